import type { RunCurves } from "@/api/types";
import { formatSeconds, formatShare } from "@/lib/format";
import type { Compared } from "./useCompared";

interface StageSplitProps {
  compared: readonly Compared[];
  curves: readonly RunCurves[];
}

export function StageSplit({ compared, curves }: StageSplitProps) {
  const splits = compared.map((one) => splitOf(one, curves));
  const stages = [...new Set(splits.flatMap(({ shares }) => [...shares.keys()]))].toSorted(
    (a, b) => greatest(splits, b) - greatest(splits, a),
  );
  if (stages.length === 0) return null;
  const most = Math.max(...splits.flatMap(({ shares }) => [...shares.values()]));
  return (
    <section
      aria-label="Where the time went"
      className="rounded-2 border border-line bg-surface p-3"
    >
      <h2 className="mb-2 font-medium text-sm">Where the time went</h2>
      <table className="w-full table-fixed text-xs">
        <thead className="sr-only">
          <tr>
            <th>Stage</th>
            <th>Share of each run's stages</th>
          </tr>
        </thead>
        <tbody>
          {stages.map((stage) => (
            <tr key={stage} className="border-line border-t first:border-t-0">
              <th className="wrap-anywhere w-44 py-2 pr-3 text-left align-top font-normal">
                {stage}
              </th>
              <td className="py-2">
                {splits.map(({ run, color, shares, seconds }) => (
                  <Bar
                    key={run}
                    color={color}
                    share={shares.get(stage) ?? null}
                    width={(shares.get(stage) ?? 0) / most}
                    words={`${run}: ${formatSeconds(seconds.get(stage))}`}
                  />
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface BarProps {
  color: string;
  share: number | null;
  width: number;
  words: string;
}

function Bar({ color, share, width, words }: BarProps) {
  return (
    <div className="flex h-4 items-center gap-2" title={words}>
      <span className="min-w-0 flex-1">
        <span
          className="block h-2 rounded-full"
          style={{
            background: color,
            width: `${Math.max(width, share === null ? 0 : 0.004) * 100}%`,
          }}
        />
      </span>
      <span className="tabular w-24 shrink-0 truncate text-right text-muted">
        {share === null ? "not in this run" : formatShare(share)}
      </span>
      <span className="sr-only">{words}</span>
    </div>
  );
}

interface Split {
  run: string;
  color: string;
  seconds: ReadonlyMap<string, number>;
  shares: ReadonlyMap<string, number>;
}

function splitOf({ run, color }: Compared, curves: readonly RunCurves[]): Split {
  const found = Object.entries(curves.find((one) => one.run === run.id)?.stages ?? {});
  const total = found.reduce((sum, [, seconds]) => sum + seconds, 0);
  return {
    run: run.name,
    color,
    seconds: new Map(found),
    shares: new Map(found.map(([stage, seconds]) => [stage, total > 0 ? seconds / total : 0])),
  };
}

function greatest(splits: readonly Split[], stage: string): number {
  return Math.max(...splits.map(({ shares }) => shares.get(stage) ?? 0));
}
