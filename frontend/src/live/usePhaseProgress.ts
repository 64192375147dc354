import { useLive } from "./hooks";

/** How far the running phase is, for the card of that phase; null for all others. */
export function usePhaseProgress(name: string | null): number | null {
  return useLive(
    "gauges",
    (live) => {
      const gauges = live.state.gauges;
      if (name === null || gauges?.phase !== name || live.connection === "ended") return null;
      const { phase_step: step, phase_steps: steps } = gauges;
      return typeof step === "number" && typeof steps === "number" && steps > 0
        ? Math.round(Math.min(1, step / steps) * 100) / 100
        : null;
    },
    null,
  );
}
