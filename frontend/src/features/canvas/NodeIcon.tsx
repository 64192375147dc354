import { useLive } from "@/live/hooks";
import { useOpenLoop } from "@/state/document/context";
import { classes } from "@/ui/classes";
import { KindIcon } from "@/ui/KindIcon";

const RADIUS = 16;
const AROUND = 2 * Math.PI * RADIUS;
const STEPS = 50;

interface NodeIconProps {
  node: string;
  icon: string | undefined;
  className?: string;
}

/** The icon of a node's kind, in a run within a ring that shows how busy the node is. */
export function NodeIcon({ node, icon, className }: NodeIconProps) {
  const { runId } = useOpenLoop();
  return (
    <span className={classes("loop-node-icon", runId && "rounded-full", className)}>
      <KindIcon name={icon} />
      {runId ? <BusyRing node={node} /> : null}
    </span>
  );
}

export function BusyRing({ node }: { node: string }) {
  const share = useLive(
    "gauges",
    (live) => Math.round((live.state.gauges?.nodes?.[node]?.busy ?? 0) * STEPS) / STEPS,
    0,
  );
  return (
    <svg
      className="busy-ring absolute -inset-[5px] size-9 fill-none stroke-[2.5]"
      viewBox="-18 -18 36 36"
      aria-hidden="true"
    >
      <circle r={RADIUS} className="stroke-line" />
      <circle
        r={RADIUS}
        className="stroke-(--node-color)"
        strokeLinecap="round"
        strokeDasharray={`${Math.min(1, share) * AROUND} ${AROUND}`}
        transform="rotate(-90)"
      />
    </svg>
  );
}
