import { GraduationCap } from "lucide-react";
import { useMemo } from "react";
import { Link, useSearch } from "wouter";
import { fieldAt } from "@/document/fieldAt";
import type { Payee, PayingEdge } from "@/document/rewards";
import type { Colors } from "@/lib/colors";
import { formatName } from "@/lib/format";
import { readPath } from "@/lib/paths";
import { sum } from "@/lib/statistics";
import { setField } from "@/state/commands/fields";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { loopAddress } from "@/state/unsaved";
import { RichText } from "@/ui/RichText";
import { Select } from "@/ui/Select";
import { Switch } from "@/ui/Switch";

const COMBINE = ["credit", "combine"];
const AS_ALGORITHM = "as_algorithm";

interface TotalBarProps {
  payee: Payee;
  edges: readonly PayingEdge[];
  colors: Colors;
  total: number;
  keepsTotal: boolean;
  onKeepTotal: (keeps: boolean) => void;
}

export function TotalBar({ payee, edges, colors, total, keepsTotal, onKeepTotal }: TotalBarProps) {
  const { loopId } = useOpenLoop();
  const search = useSearch();
  const whole = sum(edges.map(({ weight }) => Math.abs(weight)));
  return (
    <>
      <section aria-label="Total" className="flex flex-col gap-3 border-line border-t px-4 py-3">
        <div className="flex items-baseline gap-2 text-sm">
          <b>Total</b>
          <span className="text-muted text-xs">sum of weights</span>
          <span className="flex-1" />
          <b className="tabular" data-testid="total-weight">
            {total.toFixed(2)}
          </b>
        </div>
        {whole > 0 ? (
          <div className="flex h-3 overflow-hidden rounded-1" aria-hidden="true">
            {edges.map(({ key, node, weight }) => (
              <span
                key={key}
                className="border-surface border-r last:border-r-0"
                style={{
                  width: `${(Math.abs(weight) / whole) * 100}%`,
                  background: colors[node] ?? "var(--muted)",
                  opacity: weight < 0 ? 0.45 : 1,
                }}
              />
            ))}
          </div>
        ) : null}
        {edges.length > 1 ? (
          <div className="flex items-center justify-between gap-2 text-muted text-xs">
            <span aria-hidden="true">Keep the total: the other weights share the rest</span>
            <Switch label="Keep the total" isOn={keepsTotal} onChange={onKeepTotal} />
          </div>
        ) : null}
        <Combine node={payee.node} />
      </section>
      <section aria-label="Feeds" className="border-line border-t px-4 py-3">
        <h3 className="mb-2 font-semibold text-sm">Feeds</h3>
        <Link
          href={loopAddress(loopId ?? "", "", search)}
          className="inline-flex items-center gap-1.5 rounded-full bg-[color-mix(in_oklab,var(--own)_14%,transparent)] px-2.5 py-1 font-medium text-[var(--own)] text-xs"
          style={{ "--own": colors[payee.node] ?? "var(--muted)" } as React.CSSProperties}
        >
          <GraduationCap size={13} aria-hidden="true" /> {payee.name}
        </Link>
      </section>
    </>
  );
}

function Combine({ node }: { node: string }) {
  const catalog = useCatalog();
  const { store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const isReadonly = useDocument((state) => state.isReadonly);
  const field = useMemo(
    () => fieldAt(catalog, document, ["nodes", node, ...COMBINE]),
    [catalog, document, node],
  );
  if (field?.shape !== "choice") return null;
  const value = readPath(document.nodes[node], COMBINE) ?? field.fallback ?? AS_ALGORITHM;
  const choices = [AS_ALGORITHM, ...field.choices.map((choice) => choice.label)];
  return (
    <div className="flex flex-col gap-1">
      <div className="flex items-center gap-2 text-sm">
        <span className="shrink-0 text-muted" aria-hidden="true">
          Combine
        </span>
        <Select
          label="Combine"
          value={String(value)}
          isDisabled={isReadonly}
          options={choices.map((choice) => ({
            value: choice,
            label: formatName(choice).toLowerCase(),
          }))}
          onChange={(chosen) =>
            store.dispatch(
              setField,
              { node, path: COMBINE, value: chosen === AS_ALGORITHM ? undefined : chosen },
              { label: "Combine rewards" },
            )
          }
        />
      </div>
      <p className="text-muted text-xs">
        <RichText text={field.help} />
      </p>
    </div>
  );
}
