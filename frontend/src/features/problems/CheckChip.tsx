import { CircleCheckBig, LoaderCircle, WifiOff } from "lucide-react";
import { countProblems, splitProblems } from "@/document/problems";
import { formatPlural } from "@/lib/format";
import { useOpenLoop, useSync } from "@/state/document/context";
import { setPreferences } from "@/state/preferences";
import { SeverityIcon } from "@/ui/SeverityIcon";

export function CheckChip() {
  const isBroken = useSync((state) => state.brokenText !== null);
  return (
    <button
      type="button"
      className="flex h-7 min-w-28 items-center gap-1.5 whitespace-nowrap rounded-2 px-2 text-muted text-xs hover:bg-hover"
      onClick={() => setPreferences({ isDockOpen: true, dockTab: isBroken ? "yaml" : "problems" })}
    >
      {isBroken ? (
        <>
          <SeverityIcon severity="error" /> <span className="text-error">Text has errors</span>
        </>
      ) : (
        <Checked />
      )}
    </button>
  );
}

function Checked() {
  const { catalog } = useOpenLoop();
  const status = useSync((state) => state.checkStatus);
  const isOffline = status === "offline";
  const check = useSync((state) => state.check);
  const found = check && !isOffline ? splitProblems(catalog, check.report.diagnostics) : null;
  const total = found && countProblems(found.faults);
  const next = found && countProblems(found.steps);
  const isBusy = status === "checking" && total === null;
  return (
    <>
      {isOffline ? <WifiOff size={14} aria-hidden="true" /> : null}
      {isBusy ? <LoaderCircle size={14} className="animate-spin" aria-hidden="true" /> : null}
      {total === null ? (isBusy ? "Checking" : "Not checked") : null}
      {total && total.error > 0 ? (
        <>
          <SeverityIcon severity="error" />{" "}
          <span className="text-error">{formatPlural(total.error, "error")}</span>
        </>
      ) : next && next.error > 0 ? (
        <>
          <SeverityIcon severity="next step" /> Not finished
        </>
      ) : total && total.warning > 0 ? (
        <>
          <SeverityIcon severity="warning" /> {formatPlural(total.warning, "warning")}
        </>
      ) : next && next.warning > 0 ? (
        <>
          <SeverityIcon severity="next step" /> {formatPlural(next.warning, "next step")}
        </>
      ) : total ? (
        <>
          <CircleCheckBig size={14} className="text-success-mark" aria-hidden="true" /> No problems
        </>
      ) : null}
    </>
  );
}
