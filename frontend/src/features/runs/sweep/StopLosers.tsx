import { Scissors } from "lucide-react";
import { useState } from "react";
import { stopLosers } from "@/api/routes";
import { formatPlural } from "@/lib/format";
import { isFinal } from "@/live/reducer";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import type { Sweep } from "./SweepTable";

/** Stops what is behind; nothing where no run goes on. */
export function StopLosers({ sweep }: { sweep: Sweep }) {
  const [keep, setKeep] = useState("1");
  const { isBusy, attempt } = useAttempt("sweep");
  const count = Number(keep);
  const isCount = Number.isInteger(count) && count >= 1;
  const losing = isCount ? losingRuns(sweep, count) : 0;
  if (!sweep.variants.some(({ runs }) => runs.some(({ state }) => !isFinal(state)))) return null;
  return (
    <form
      className="flex flex-wrap items-center gap-2 text-sm"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(() => stopLosers(sweep.sweep, count), "No run was stopped.");
      }}
    >
      <label className="flex items-center gap-2">
        <span className="text-muted">Keep the best</span>
        <input
          inputMode="numeric"
          className={`${CONTROL} tabular w-14`}
          value={keep}
          aria-invalid={!isCount || undefined}
          onChange={(event) => setKeep(event.target.value)}
        />
      </label>
      <Button type="submit" icon={<Scissors size={14} />} disabled={isBusy || losing === 0}>
        {losing === 0 ? "No losers to stop" : `Stop the losers: ${formatPlural(losing, "run")}`}
      </Button>
    </form>
  );
}

/** Runs in progress or queued of combinations that stand behind so many others. */
export function losingRuns({ variants }: Pick<Sweep, "variants">, keep: number): number {
  const behind = variants.filter(({ rank }) => rank !== null && rank > keep);
  return behind.flatMap(({ runs }) => runs).filter(({ state }) => !isFinal(state)).length;
}
