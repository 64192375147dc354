import { useOpenLoop } from "@/document/context";
import { METRIC_HEIGHT } from "@/document/geometry";
import { useLive } from "@/live/hooks";
import { mainMetric, stripText } from "./mainMetric";

const WIDTH = 56;
const HEIGHT = 26;

/** A node's main number, large, and how it came to be. */
export function MetricStrip({ node }: { node: string }) {
  const { catalog } = useOpenLoop();
  const told = useLive(
    "series",
    (live) => {
      const metric = mainMetric(catalog, live, node);
      return metric ? stripText(metric, WIDTH, HEIGHT) : "";
    },
    "",
  );
  const [value = "", title = "", line = ""] = told.split("|");
  return (
    <div className="metric-strip tabular" style={{ height: METRIC_HEIGHT }}>
      {told === "" ? (
        <span className="text-faint">no number yet</span>
      ) : (
        <>
          <span className="min-w-0 flex-1">
            <span className="metric-strip-value">{value}</span>
            <span className="metric-strip-name" title={title}>
              {title.toLowerCase()}
            </span>
          </span>
          <svg
            className="metric-strip-line"
            width={WIDTH}
            height={HEIGHT + 4}
            viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`}
            role="img"
            aria-label={`${title} so far`}
          >
            {line === "" ? null : <path d={`${line}V${HEIGHT}H0Z`} className="metric-strip-area" />}
            <path d={line} />
          </svg>
        </>
      )}
    </div>
  );
}
