import { useNodeColors } from "@/document/context";
import { formatShare } from "@/lib/format";
import { useSelection } from "@/session/selection";
import { idleShare, type Range, type TimelineRow } from "./rows";

interface TimelineRowsProps {
  rows: readonly TimelineRow[];
  range: Range;
  now: number;
  rowHeight: number;
  /** Height of the axis above the rows. */
  axis: number;
}

/** What stands before each row of bars: whose it is, and how much of the time nobody worked there. */
export function TimelineRows({ rows, range, now, rowHeight, axis }: TimelineRowsProps) {
  const colors = useNodeColors();
  return (
    <ul className="w-44 shrink-0 max-lg:w-32" style={{ paddingTop: axis }}>
      {rows.map((row) => {
        const node = row.node ?? firstNode(row);
        const idle = row.showsIdle ? idleShare(row, range, now) : null;
        return (
          <li key={row.key} style={{ height: rowHeight }}>
            <button
              type="button"
              className="flex h-full w-full items-center gap-2 px-3 text-left text-xs hover:bg-hover"
              title={
                idle === null
                  ? `${row.label} ${row.note}`
                  : `${row.label} ${row.note}: idle ${formatShare(idle)} of what is shown`
              }
              onClick={() => {
                if (node === null) return;
                useSelection.getState().select({ nodes: [node] });
                useSelection.getState().focusField(node, null);
              }}
            >
              <span
                className="size-2 shrink-0 rounded-[2px]"
                style={{ background: node ? colors[node] : "var(--muted)" }}
              />
              <span className="min-w-0 flex-1 truncate font-medium">{row.label}</span>
              <span className="tabular shrink-0 text-muted max-lg:hidden">
                {row.note || (idle === null ? "" : `${formatShare(idle)} idle`)}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** The node that worked there longest. */
function firstNode(row: TimelineRow): string | null {
  const sums = new Map<string, number>();
  for (const { span, start, end } of row.bars) {
    sums.set(span.node, (sums.get(span.node) ?? 0) + (end ?? start) - start);
  }
  return [...sums].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
