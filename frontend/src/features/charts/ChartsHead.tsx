import { Search } from "lucide-react";
import type { Json } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { teachingPorts } from "@/document/teaching";
import { isObject } from "@/lib/paths";
import { usePreferences } from "@/session/preferences";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";

interface ChartsHeadProps {
  filter: string;
  onFilter: (filter: string) => void;
  showsAll: boolean;
  onShowAll: (showsAll: boolean) => void;
  /** How many charts are not shown without asking. */
  hidden: number;
}

/** What the charts were chosen for, and the way to others. */
export function ChartsHead({ filter, onFilter, showsAll, onShowAll, hidden }: ChartsHeadProps) {
  const smoothing = usePreferences((state) => state.smoothing);
  const set = usePreferences((state) => state.set);
  const chosenFor = useChosenFor();
  return (
    <div className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 px-3 py-1.5">
      <h2 className="font-semibold text-sm">Charts</h2>
      {chosenFor ? (
        <span className="min-w-12 flex-1 basis-0">
          <Badge tone="accent" className="max-w-full text-xs" title={`Chosen for ${chosenFor}`}>
            <span className="truncate">chosen for {chosenFor}</span>
          </Badge>
        </span>
      ) : (
        <span className="flex-1" />
      )}
      {hidden > 0 && filter === "" ? (
        <Button size="small" look="quiet" onClick={() => onShowAll(!showsAll)}>
          {showsAll ? "Fewer" : `${hidden} more`}
        </Button>
      ) : null}
      <label className="relative flex items-center">
        <Search size={13} className="absolute left-2 text-muted" aria-hidden="true" />
        <input
          role="searchbox"
          aria-label="Filter metrics"
          placeholder="metric"
          className={`${CONTROL} w-20 pl-7`}
          value={filter}
          onChange={(event) => onFilter(event.target.value)}
        />
      </label>
      <label className="flex items-center gap-2 text-muted text-xs">
        <span>
          smooth <span className="tabular inline-block w-7 text-text">{smoothing.toFixed(2)}</span>
        </span>
        <input
          type="range"
          aria-label="Smoothing"
          min={0}
          max={0.99}
          step={0.01}
          value={smoothing}
          className="w-10 accent-(--accent)"
          onChange={(event) => set({ smoothing: Number(event.target.value) })}
        />
      </label>
    </div>
  );
}

/** The algorithms by which the loop's nodes learn, such as "GRPO × 2". */
function useChosenFor(): string {
  const catalog = useCatalog();
  return useDocument(({ document }) => {
    const learners = new Set(teachingPorts(catalog, document).map(({ node }) => node));
    const known = Object.values(catalog.algorithms).flat();
    const counts = new Map<string, number>();
    for (const id of learners) {
      const algorithm = document.nodes[id]?.algorithm;
      for (const name of new Set(namesIn(algorithm))) {
        const title = known.find((one) => one.name === name)?.title ?? name;
        counts.set(title, (counts.get(title) ?? 0) + 1);
      }
    }
    return [...counts].map(([title, n]) => (n > 1 ? `${title} × ${n}` : title)).join(", ");
  });
}

/** An algorithm, or one for each port, or several. */
function namesIn(value: Json | undefined): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (!isObject(value)) return [];
  return typeof value.name === "string" ? [value.name] : Object.values(value).flatMap(namesIn);
}
