import { useQuery } from "@tanstack/react-query";
import { placeLoop } from "@/api/routes";
import type { BackendOfLearner, Change, PlaceAnswer, Placed } from "@/api/types";
import { toSpec } from "@/document/convert";
import { isOnCpu } from "@/document/pools";
import { longerBy } from "@/lib/estimate";
import { formatBytes, formatSeconds, formatShare } from "@/lib/format";
import { useDocument, useEditRefusal } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { Gain, usePoolColor } from "./StepSplit";
import type { Budget } from "./useBudget";

export function Placement({ budget }: { budget: Budget }) {
  const document = useDocument((state) => state.document);
  const found = useQuery({
    queryKey: ["place", document],
    queryFn: ({ signal }) => placeLoop({ spec: toSpec(document) }, signal),
    gcTime: 0,
    retry: false,
    structuralSharing: false,
  });
  return (
    <>
      <section aria-label="Placement" className="border-line border-b px-4 py-3">
        <div className="mb-2 flex items-baseline gap-2">
          <h3 className="font-semibold text-base">Placement</h3>
          {budget.isTrying ? (
            <span className="text-muted text-xs">at {formatShare(budget.own)} of the memory</span>
          ) : null}
          <span className="flex-1" />
          {found.data ? (
            <span className="tabular text-muted text-xs">
              {found.data.tried} tried in {formatSeconds(found.data.seconds)}
            </span>
          ) : null}
        </div>
        {found.data ? (
          <Both answer={found.data} take={budget.take} />
        ) : (
          <p className="text-muted text-sm">
            {found.isError ? "The search for a placement failed." : "Looking for a faster one…"}
          </p>
        )}
      </section>
      {(found.data?.backends ?? []).map((advice) => (
        <Backend key={advice.node} advice={advice} budget={budget} />
      ))}
    </>
  );
}

function Both({ answer, take }: { answer: PlaceAnswer; take: Budget["take"] }) {
  const { yours, suggested, reason, edits } = answer;
  const refusal = useEditRefusal();
  return (
    <>
      <PlacementCard title="Yours" placed={yours} />
      {suggested ? (
        <>
          <PlacementCard title="Suggested" placed={suggested} isBest />
          <p className="mb-2 text-muted text-xs">{reason}</p>
          <Button refusal={refusal} onClick={() => take(edits, "Use suggested placement")}>
            Use suggested <Gain seconds={longerBy(suggested.step_seconds, yours.step_seconds)} />
          </Button>
        </>
      ) : (
        <p className="text-muted text-xs">{reason}</p>
      )}
    </>
  );
}

interface PlacementCardProps {
  title: string;
  placed: Placed;
  isBest?: boolean;
}

function PlacementCard({ title, placed, isBest = false }: PlacementCardProps) {
  const place = useDocument((state) => (isOnCpu(state.document) ? "process" : "GPU"));
  const color = usePoolColor();
  return (
    <article
      aria-label={`${title} placement`}
      className={classes(
        "mb-2 rounded-3 border px-3 py-2",
        isBest ? "border-accent ring-1 ring-accent" : "border-line",
      )}
    >
      <div className="flex items-center gap-2">
        <b className="text-sm">{title}</b>
        <Badge tone={placed.fits ? "success" : "error"}>
          {placed.fits
            ? "fits"
            : placed.over_bytes > 0
              ? `over by ${formatBytes(placed.over_bytes)}`
              : "does not fit"}
        </Badge>
        <span className="flex-1" />
        <b className="tabular text-base" title="A step">
          {formatSeconds(placed.step_seconds)}
        </b>
      </div>
      <div className="my-2 flex gap-0.5" aria-hidden="true">
        {placed.pools.map((pool) => {
          const nodes = [...new Set([...pool.nodes, ...pool.writers])];
          return (
            <span key={pool.pool} className="flex h-5 gap-0.5" style={{ flexGrow: pool.gpus }}>
              {Array.from({ length: Math.min(pool.gpus, 16) }, (_, index) => (
                <span key={index} className="flex flex-1 flex-col overflow-hidden rounded-1">
                  {nodes.slice(0, 3).map((node) => (
                    <span key={node} className="flex-1" style={{ background: color([node]) }} />
                  ))}
                </span>
              ))}
            </span>
          );
        })}
      </div>
      <p className="tabular text-muted text-xs">
        {placed.text}
        {placed.peak_bytes === null
          ? ""
          : `; ${formatBytes(placed.peak_bytes)} on the fullest ${place}`}
      </p>
    </article>
  );
}

function Backend({ advice, budget }: { advice: BackendOfLearner; budget: Budget }) {
  const isOther = advice.backend !== advice.advised;
  const priced = advice.options.filter((one) => one.step_seconds !== null && one.fits);
  const path = `nodes.${advice.node}.training.backend`;
  const edit: Change = { op: "set", path, value: advice.advised };
  return (
    <section aria-label={`Backend of ${advice.node}`} className="border-line border-b px-4 py-3">
      <div className="flex items-center gap-2">
        <h3 className="font-semibold text-base">Backend</h3>
        <span className="truncate text-muted text-sm">{advice.node}</span>
        <span className="flex-1" />
        <Badge tone={isOther ? "warning" : "success"}>{advice.advised} advised</Badge>
      </div>
      <p className="mt-1 text-muted text-xs">{advice.reason}.</p>
      {priced.length > 1 ? (
        <ul className="tabular mt-1 flex flex-wrap gap-x-4 text-xs">
          {priced.map((one) => (
            <li key={one.backend} className={one.backend === advice.backend ? "" : "text-muted"}>
              {one.backend} {formatSeconds(one.step_seconds)}
              {one.backend === advice.backend ? " (yours)" : ""}
            </li>
          ))}
        </ul>
      ) : null}
      {isOther ? (
        <Button
          size="small"
          className="mt-2"
          onClick={() => budget.take([edit], `Use ${advice.advised} for ${advice.node}`)}
        >
          Use {advice.advised}
        </Button>
      ) : null}
    </section>
  );
}
