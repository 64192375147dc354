import { Plus } from "lucide-react";
import { useState } from "react";
import type { ScoredRows } from "@/api/types";
import { type Payee, type PayingEdge, rounded, weighed } from "@/document/rewards";
import { setWeights } from "@/state/commands/edges";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { LabelledSelect } from "@/ui/LabelledSelect";
import { AddSource } from "./AddSource";
import { SourceRow } from "./SourceRow";
import type { SourceColors } from "./sourceColors";
import { TotalBar } from "./TotalBar";

interface SourceListProps {
  payee: Payee;
  payees: readonly Payee[];
  edges: readonly PayingEdge[];
  found: ScoredRows | null;
  colors: SourceColors;
  chosen: string | null;
  onPayee: (name: string) => void;
  onChoose: (node: string) => void;
}

/** What pays a learner, and how much of it each source is. */
export function SourceList(props: SourceListProps) {
  const { payee, payees, edges, found, colors, chosen, onPayee, onChoose } = props;
  const { store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const [isAdding, setAdding] = useState(false);
  const [keepsTotal, setKeepsTotal] = useState(false);
  const [locked, setLocked] = useState<ReadonlySet<string>>(new Set());
  const total = rounded(edges.reduce((sum, { weight }) => sum + weight, 0));
  const scale = Math.max(1, ...edges.map(({ weight }) => Math.abs(weight)));

  const weigh = (key: string, weight: number) => {
    const weights = weighed(edges, key, weight, keepsTotal ? { total, locked } : null);
    store.getState().dispatch(setWeights, { weights }, { group: `weigh ${payee.name} ${key}` });
  };
  const toggleLock = (key: string) => {
    const next = new Set(locked);
    if (!next.delete(key)) next.add(key);
    setLocked(next);
  };
  return (
    <aside
      aria-label="Sources"
      className="flex w-[264px] shrink-0 flex-col overflow-y-auto border-line border-r bg-surface xl:w-[312px]"
    >
      <div className="flex h-12 shrink-0 items-center justify-between gap-2 px-4">
        <h2 className="font-semibold text-base">Sources</h2>
        <Button
          size="small"
          icon={<Plus size={14} />}
          disabled={isReadonly}
          onClick={() => setAdding(true)}
        >
          Add source
        </Button>
      </div>
      {payees.length > 1 ? (
        <div className="border-line border-t px-4 py-2 text-muted text-xs">
          <LabelledSelect
            label="Learner"
            value={payee.name}
            options={payees.map(({ name }) => ({ value: name, label: name }))}
            onChange={onPayee}
          />
        </div>
      ) : null}
      {edges.length === 0 ? (
        <p className="border-line border-t p-4 text-muted text-sm">
          {payee.node} has no reward yet. Add a source: a built-in check, a model, or your own code.
        </p>
      ) : (
        <ul>
          {edges.map((edge) => (
            <SourceRow
              key={edge.key}
              edge={edge}
              color={colors[edge.node]}
              scale={scale}
              said={found?.sources.find((one) => one.edge === edge.name) ?? null}
              isChosen={edge.node === chosen}
              isLocked={locked.has(edge.key)}
              isReadonly={isReadonly}
              onChoose={() => onChoose(edge.node)}
              onLock={() => toggleLock(edge.key)}
              onWeigh={(weight) => weigh(edge.key, weight)}
            />
          ))}
        </ul>
      )}
      <TotalBar
        payee={payee}
        edges={edges}
        colors={colors}
        total={total}
        keepsTotal={keepsTotal}
        onKeepTotal={setKeepsTotal}
      />
      <AddSource
        payee={payee}
        isOpen={isAdding}
        onClose={() => setAdding(false)}
        onAdded={onChoose}
      />
    </aside>
  );
}
