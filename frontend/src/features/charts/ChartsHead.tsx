import { Search, X } from "lucide-react";
import type { Json } from "@/api/types";
import { teachingPorts } from "@/document/teaching";
import { isObject } from "@/lib/paths";
import { useCatalog, useDocument } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { type Zoom, zoomText } from "./zoom";

interface ChartsHeadProps {
  filter: string;
  onFilter: (filter: string) => void;
  zoom: Zoom | null;
  onAllSteps: () => void;
}

/** What the charts were chosen for, and how they are found and drawn. */
export function ChartsHead({ filter, onFilter, zoom, onAllSteps }: ChartsHeadProps) {
  const smoothing = usePreferences((state) => state.smoothing);
  const set = usePreferences((state) => state.set);
  const chosenFor = useChosenFor();
  return (
    <div className="@container flex min-h-10 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 px-3 py-1.5">
      <h2 className="font-semibold text-sm">Charts</h2>
      {chosenFor ? (
        <Badge tone="accent" className="max-w-full text-xs" title={`Chosen for ${chosenFor}`}>
          <span className="truncate">for {chosenFor}</span>
        </Badge>
      ) : null}
      {zoom ? (
        <Button size="small" title="Show all steps again, including new ones" onClick={onAllSteps}>
          {zoomText(zoom)}
          <X size={12} aria-hidden="true" />
        </Button>
      ) : null}
      <span className="flex flex-1 items-center justify-end gap-2">
        <label className="relative flex max-w-48 flex-1 items-center">
          <Search size={13} className="absolute left-2 text-muted" aria-hidden="true" />
          <input
            role="searchbox"
            aria-label="Filter metrics"
            placeholder="metric"
            className={`${CONTROL} w-full min-w-20 pl-7`}
            value={filter}
            onChange={(event) => onFilter(event.target.value)}
          />
        </label>
        <label className="flex items-center gap-2 text-muted text-xs">
          <span>
            smooth{" "}
            <span className="tabular hidden w-7 text-text @md:inline-block">
              {smoothing.toFixed(2)}
            </span>
          </span>
          <input
            type="range"
            aria-label="Smoothing"
            title={`Smoothing ${smoothing.toFixed(2)}`}
            min={0}
            max={0.99}
            step={0.01}
            value={smoothing}
            className="w-10 accent-(--accent)"
            onChange={(event) => set({ smoothing: Number(event.target.value) })}
          />
        </label>
      </span>
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
