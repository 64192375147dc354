import { useQuery } from "@tanstack/react-query";
import { CircleAlert, Search } from "lucide-react";
import { type FormEvent, useState } from "react";
import { errorMessage } from "@/api/client";
import { describeHubModel, previewHubDataset } from "@/api/routes";
import { isObject } from "@/lib/paths";
import { useDocument } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { RichText } from "@/ui/RichText";
import { Segmented } from "@/ui/Segmented";
import { Loading } from "@/ui/States";
import { FoundDataset } from "./FoundDataset";
import { FoundModel } from "./FoundModel";
import type { UsedHub } from "./useHub";

type Kind = "model" | "dataset";

const KINDS: readonly { value: Kind; label: string }[] = [
  { value: "model", label: "Model" },
  { value: "dataset", label: "Dataset" },
];
/** Rows of a dataset that are shown before its download. */
const ROWS = 5;

interface OnHubProps {
  hub: UsedHub;
  /** An id that is looked at first; empty: none. */
  first: string;
}

/** A repository of the hub by its id. Nothing is asked before the user does. */
export function OnHub({ hub, first }: OnHubProps) {
  const [kind, setKind] = useState<Kind>("model");
  const [typed, setTyped] = useState(first);
  const [id, setId] = useState(first);
  const look = (event: FormEvent) => {
    event.preventDefault();
    setId(typed.trim());
  };
  return (
    <section aria-label="On the hub" className="flex min-h-0 flex-col">
      <form
        onSubmit={look}
        className="flex shrink-0 items-center gap-2 border-line border-b px-4 py-1.5"
      >
        <Segmented label="What to look at" value={kind} options={KINDS} onChange={setKind} />
        <input
          className={WIDE_CONTROL}
          aria-label="Id on the hub"
          placeholder="Id on the hub: user/name"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Button
          type="submit"
          size="small"
          icon={<Search size={13} />}
          disabled={typed.trim() === ""}
        >
          Look
        </Button>
      </form>
      <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label="Found">
        {id === "" ? (
          <p className="px-4 py-3 text-muted text-xs">
            Size, licence, parameters and whether it can be trained here, or the first rows of a
            dataset, are shown before anything is downloaded.
          </p>
        ) : kind === "model" ? (
          <Model id={id} hub={hub} />
        ) : (
          <Dataset id={id} hub={hub} />
        )}
      </div>
    </section>
  );
}

interface FoundProps {
  id: string;
  hub: UsedHub;
}

function Model({ id, hub }: FoundProps) {
  const hardware = useDocument((state) => state.document.rest.hardware);
  const query = useQuery({
    queryKey: ["hub model", id, hardware],
    queryFn: ({ signal }) =>
      describeHubModel({ id, hardware: isObject(hardware) ? hardware : null }, signal),
    retry: false,
    staleTime: 60_000,
  });
  if (query.isError) return <Refused error={query.error} />;
  if (query.data === undefined) return <Loading label={`Reading about ${id}`} />;
  return <FoundModel model={query.data} hub={hub} />;
}

function Dataset({ id, hub }: FoundProps) {
  const [split, setSplit] = useState<{ id: string; config: string | null; split: string } | null>(
    null,
  );
  const part = split?.id === id ? split : null;
  const query = useQuery({
    queryKey: ["hub dataset", id, part],
    queryFn: ({ signal }) =>
      previewHubDataset(
        { id, rows: ROWS, split: part?.split ?? null, config: part?.config ?? null },
        signal,
      ),
    retry: false,
    staleTime: 60_000,
  });
  if (query.isError) return <Refused error={query.error} />;
  if (query.data === undefined) return <Loading label={`Reading rows of ${id}`} />;
  return (
    <FoundDataset
      dataset={query.data}
      hub={hub}
      chosen={part}
      onChoose={(config, name) => setSplit({ id, config, split: name })}
    />
  );
}

function Refused({ error }: { error: unknown }) {
  return (
    <p role="alert" className="flex items-start gap-2 px-4 py-3 text-error text-sm">
      <CircleAlert size={15} className="mt-0.5 shrink-0" aria-hidden="true" />
      <span>
        <RichText text={errorMessage(error)} />
      </span>
    </p>
  );
}
