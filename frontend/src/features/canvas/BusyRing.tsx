import { useLive } from "@/live/hooks";

const RADIUS = 16;
const AROUND = 2 * Math.PI * RADIUS;
const STEPS = 50;

export function BusyRing({ node }: { node: string }) {
  const share = useLive(
    "gauges",
    (live) => Math.round((live.state.gauges?.nodes?.[node]?.busy ?? 0) * STEPS) / STEPS,
    0,
  );
  return (
    <svg className="busy-ring" viewBox="-18 -18 36 36" aria-hidden="true">
      <circle r={RADIUS} className="busy-ring-ground" />
      <circle
        r={RADIUS}
        className="busy-ring-share"
        strokeDasharray={`${Math.min(1, share) * AROUND} ${AROUND}`}
        transform="rotate(-90)"
      />
    </svg>
  );
}
