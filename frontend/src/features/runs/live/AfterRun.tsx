import { ChartNoAxesColumn, ChevronDown, Dices, RotateCcw } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { startRun } from "@/api/routes";
import { useLive, useLiveRun } from "@/live/hooks";
import { useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Menu, MenuItem } from "@/ui/Menu";
import { withTrust } from "../start/TrustDialog";
import { ReportDialog } from "./ReportDialog";

/** Another seed is drawn from as many. */
const SEEDS = 9999;

interface AfterRunProps {
  isBusy: boolean;
  /** Does some work and says what went wrong. */
  attempt: (work: () => Promise<unknown>) => Promise<void>;
}

/** What one does with a run that has ended: run it again, with the same seed or another, read its report. */
export function AfterRun({ isBusy, attempt }: AfterRunProps) {
  const live = useLiveRun();
  const { store } = useOpenLoop();
  const loopId = useLive("status", (run) => run.run?.loop_id ?? null, null);
  const name = useLive("status", (run) => run.run?.name ?? "", "");
  const hasBegun = useLive(
    "status",
    ({ run }) => run?.state !== "failed" || run.started_at !== null,
    true,
  );
  const [hasReport, setReport] = useState(false);
  const [seed] = useState(() => 1 + Math.floor(Math.random() * SEEDS));
  const [, navigate] = useLocation();
  if (!live) return null;

  const again = (other?: number) =>
    attempt(async () => {
      const asked = {
        yaml: store.getState().text,
        name,
        ...(loopId ? { loop_id: loopId } : {}),
        ...(other === undefined ? {} : { seed: other }),
      };
      const run = await withTrust((trust) => startRun({ ...asked, trust }));
      if (run) navigate(`/runs/${run.id}`);
    });
  return (
    <>
      {hasBegun ? (
        <Button icon={<ChartNoAxesColumn size={14} />} onClick={() => setReport(true)}>
          Report
        </Button>
      ) : null}
      <Menu
        align="end"
        trigger={
          <Button look="primary" icon={<RotateCcw size={14} />} disabled={isBusy}>
            Run again
            <ChevronDown size={13} aria-hidden="true" />
          </Button>
        }
      >
        <MenuItem icon={<RotateCcw size={14} />} onSelect={() => void again()}>
          With the same seed
        </MenuItem>
        <MenuItem icon={<Dices size={14} />} onSelect={() => void again(seed)}>
          With another seed: {seed}
        </MenuItem>
      </Menu>
      <ReportDialog run={live.id} isOpen={hasReport} onClose={() => setReport(false)} />
    </>
  );
}
