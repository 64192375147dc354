import { CircleCheckBig, LoaderCircle, WifiOff } from "lucide-react";
import type { Catalog, Diagnostic } from "@/api/types";
import { countProblems, splitProblems, type Tone } from "@/document/problems";
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
  const check = useSync((state) => state.check);
  const isOffline = status === "offline";
  const result = check && !isOffline ? resultOf(catalog, check.report.diagnostics) : null;
  const isBusy = status === "checking" && result === null;
  return (
    <>
      {isOffline ? <WifiOff size={14} aria-hidden="true" /> : null}
      {isBusy ? <LoaderCircle size={14} className="animate-spin" aria-hidden="true" /> : null}
      {result === null ? (
        isBusy ? (
          "Checking"
        ) : (
          "Not checked"
        )
      ) : (
        <>
          {result.tone ? (
            <SeverityIcon severity={result.tone} />
          ) : (
            <CircleCheckBig size={14} className="text-success-mark" aria-hidden="true" />
          )}{" "}
          <span className={result.tone === "error" ? "text-error" : ""}>{result.text}</span>
        </>
      )}
    </>
  );
}

/** The worst of what a check says, errors of what is there before what is not there yet. */
function resultOf(
  catalog: Catalog,
  problems: readonly Diagnostic[],
): { tone: Tone | null; text: string } {
  const { faults, steps } = splitProblems(catalog, problems);
  const [total, next] = [countProblems(faults), countProblems(steps)];
  if (total.error > 0) return { tone: "error", text: formatPlural(total.error, "error") };
  if (next.error > 0) return { tone: "next step", text: "Not finished" };
  if (total.warning > 0) return { tone: "warning", text: formatPlural(total.warning, "warning") };
  if (next.warning > 0) return { tone: "next step", text: formatPlural(next.warning, "next step") };
  return { tone: null, text: "No problems" };
}
