import type { Lengths } from "@/api/types";
import { formatCount, formatPlural } from "@/lib/format";

const HEIGHT = 96;

/** How long rows are, against what there is room for. */
export function LengthChart({ lengths }: { lengths: Lengths }) {
  const { bins, width, limit, longest, mean, measured, over } = lengths;
  const most = Math.max(1, ...bins);
  // The limit is drawn where it lies among the bins, or not at all where it is far.
  const end = bins.length * width;
  const at = limit !== null && limit < end ? (limit / end) * 100 : null;
  const told = `${formatPlural(measured, "row")}, mean ${mean.toFixed(0)}, longest ${longest} tokens`;
  return (
    <section>
      <h2 className="mb-1 font-semibold text-sm">Length in tokens</h2>
      <p className="mb-3 text-muted text-xs">{told}</p>
      <div
        role="img"
        aria-label={`${told}: ${bins.join(", ")} rows in bins of ${width}`}
        className="relative flex items-end gap-px border-line border-b"
        style={{ height: HEIGHT }}
      >
        {bins.map((count, bin) => (
          <span
            key={bin}
            className="flex-1 rounded-t-[2px]"
            style={{
              height: count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT),
              background:
                limit !== null && bin * width > limit ? "var(--error)" : "var(--port-rows)",
            }}
          />
        ))}
        {at === null ? null : (
          <span
            className="absolute inset-y-0 border-error border-l-2 border-dashed"
            style={{ left: `${at}%` }}
          />
        )}
      </div>
      <div className="tabular mt-1 flex justify-between text-muted text-xs" aria-hidden="true">
        <span>0</span>
        <span>{end}</span>
      </div>
      <p className="mt-3 text-xs">
        {limit === null ? (
          lengths.limit_from
        ) : over > 0 ? (
          <span className="text-error">
            {over} of {formatPlural(measured, "row")} are longer than {formatCount(limit)} tokens (
            {lengths.limit_from}): {lengths.over_does}.
          </span>
        ) : (
          <>
            All fit: the limit is {formatCount(limit)} tokens ({lengths.limit_from}).
          </>
        )}
      </p>
    </section>
  );
}
