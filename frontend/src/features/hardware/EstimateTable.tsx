import { Flame } from "lucide-react";
import type { Estimate } from "@/api/types";
import { unknownText } from "@/lib/estimate";
import { formatCount, formatRate, formatSeconds } from "@/lib/format";

/** The predicted time of a step, stage by stage, and the size of the models. */
export function EstimateTable({ estimate }: { estimate: Estimate }) {
  const slowest = Math.max(...estimate.stages.map((stage) => stage.seconds ?? 0), 0);
  return (
    <>
      <p className="mb-2 text-sm">
        {estimate.step_seconds === null ? (
          "The step time is not known"
        ) : (
          <>
            A step takes about <b className="tabular">{formatSeconds(estimate.step_seconds)}</b>
          </>
        )}
        {estimate.bottleneck ? (
          <>
            ; most of it goes to <b>{estimate.bottleneck}</b>
          </>
        ) : null}
        .
      </p>
      {estimate.unknown.length > 0 ? (
        <p className="mb-2 whitespace-pre-line text-sm text-warning">
          Not known: {unknownText(estimate)}
        </p>
      ) : null}
      <table className="w-full text-xs">
        <thead className="text-left text-muted">
          <tr>
            <th className="pb-1 font-medium">Stage</th>
            <th className="pb-1 text-right font-medium">Time</th>
            <th className="pb-1 text-right font-medium">Tokens</th>
            <th className="pb-1 pl-3 font-medium">Bound by</th>
          </tr>
        </thead>
        <tbody>
          {estimate.stages.map((stage, index) => (
            <tr key={`${stage.stage} ${index}`} className="border-line border-t">
              <td className="relative max-w-40 truncate py-1 pr-2">
                <span
                  className="absolute inset-y-0.5 left-0 -z-0 rounded-1 bg-accent-soft"
                  style={{ width: `${slowest > 0 ? ((stage.seconds ?? 0) / slowest) * 100 : 0}%` }}
                />
                <span className="relative flex items-center gap-1 px-1">
                  <span className="truncate" title={stage.stage}>
                    {stage.stage}
                  </span>
                  {stage.stage === estimate.bottleneck ? (
                    <Flame
                      size={12}
                      className="shrink-0 text-warning"
                      role="img"
                      aria-label="bottleneck"
                    />
                  ) : null}
                </span>
              </td>
              <td className="tabular text-right">{formatSeconds(stage.seconds)}</td>
              <td className="tabular text-right">
                {stage.tokens_per_second ? formatRate(stage.tokens_per_second, "tok") : ""}
              </td>
              <td className="pl-3 text-muted">{stage.bound ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <dl className="mt-3 grid grid-cols-[1fr_auto] gap-x-4 gap-y-1 text-xs">
        {Object.entries(estimate.parameters).map(([node, count]) => (
          <div key={node} className="contents">
            <dt className="truncate text-muted">{node}, parameters</dt>
            <dd className="tabular text-right">{formatCount(count)}</dd>
          </div>
        ))}
        {Object.entries(estimate.rollout ?? {}).map(([node, rollout]) => (
          <div key={node} className="contents">
            <dt className="truncate text-muted">{node}, sequences at once</dt>
            <dd className="tabular text-right">{formatCount(rollout.max_concurrent_sequences)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
