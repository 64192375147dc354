import { Star } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { useSearch } from "wouter";
import { preparePreviews } from "@/api/routes";
import type { ScoredRows } from "@/api/types";
import { type Payee, payees, payingEdges } from "@/document/rewards";
import { useCatalog, useDocument } from "@/state/document/context";
import { usePreview } from "@/state/usePreview";
import { Empty } from "@/ui/States";
import { Distributions } from "./Distributions";
import { PreviewPane } from "./PreviewPane";
import { SourceEditor } from "./SourceEditor";
import { SourceList } from "./SourceList";
import { useSourceColors } from "./sourceColors";

interface StudioProps {
  /** The settings of a source that is no code. */
  settings: (node: string) => ReactNode;
}

/** The rewards of a loop: who is paid by what, the code of each source, and what they say of rows. */
export function Studio({ settings }: StudioProps) {
  const catalog = useCatalog();
  const document = useDocument((state) => state.document);
  const all = useMemo(() => payees(catalog, document), [catalog, document]);
  const wanted = new URLSearchParams(useSearch()).get("source");
  const [chosen, setChosen] = useState<string | null>(null);
  const payee =
    all.find(({ name }) => name === chosen) ??
    all.find(({ name }) => payingEdges(document, name).some(({ node }) => node === wanted)) ??
    all[0];
  useEffect(() => {
    // The first preview is not to wait until the engine is loaded; without it, it loads then.
    void preparePreviews().catch(() => {});
  }, []);
  if (payee === undefined) {
    return (
      <Empty icon={<Star size={24} />} title="No node learns from rewards">
        Add a node that generates and learns; its reward is composed here.
      </Empty>
    );
  }
  return (
    <Bench
      key={payee.name}
      payee={payee}
      payees={all}
      wanted={wanted}
      onPayee={setChosen}
      settings={settings}
    />
  );
}

interface BenchProps extends StudioProps {
  payee: Payee;
  payees: readonly Payee[];
  /** The source to begin with. */
  wanted: string | null;
  onPayee: (name: string) => void;
}

function Bench({ payee, payees: all, wanted, onPayee, settings }: BenchProps) {
  const document = useDocument((state) => state.document);
  const edges = useMemo(() => payingEdges(document, payee.name), [document, payee.name]);
  const [chosen, setChosen] = useState<string | null>(wanted);
  const preview = usePreview<ScoredRows>();
  const source = edges.find(({ node }) => node === chosen) ?? edges[0] ?? null;
  const colors = useSourceColors(edges);
  const said = preview.found?.sources.find((one) => one.edge === source?.name) ?? null;
  return (
    <div className="flex min-h-0 flex-1">
      <SourceList
        payee={payee}
        payees={all}
        edges={edges}
        found={preview.found}
        colors={colors}
        chosen={source?.node ?? null}
        onPayee={onPayee}
        onChoose={setChosen}
      />
      <div className="flex min-w-0 flex-1 flex-col">
        <SourceEditor
          key={source?.node ?? ""}
          node={source?.node ?? null}
          color={colors[source?.node ?? ""]}
          said={said}
          asked={preview.asked}
          settings={settings}
        />
        <PreviewPane
          payee={payee}
          edges={edges}
          colors={colors}
          preview={preview}
          onChoose={setChosen}
        />
      </div>
      <Distributions found={preview.found} edges={edges} colors={colors} />
    </div>
  );
}
