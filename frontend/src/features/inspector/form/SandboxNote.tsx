import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck } from "lucide-react";
import { fetchSandbox } from "@/api/routes";
import { Tooltip } from "@/ui/Tooltip";

const NAMES = { namespaces: "Sandboxed", calls: "Sandboxed, calls only", none: "No sandbox" };

/** What stands between this code and the machine that runs it; more on hover and focus. */
export function SandboxNote() {
  const { data } = useQuery({ queryKey: ["sandbox"], queryFn: fetchSandbox, staleTime: Infinity });
  if (data === undefined) return null;
  const isOpen = data.wall === "none";
  const Mark = isOpen ? ShieldAlert : ShieldCheck;
  return (
    <Tooltip text={<SandboxText holds={data.holds} remains={data.remains} reason={data.reason} />}>
      <button
        type="button"
        className={`flex items-center gap-1 rounded-1 px-1 py-0.5 text-2xs ${
          isOpen ? "text-warning" : "text-muted"
        }`}
      >
        <Mark size={12} aria-hidden />
        {NAMES[data.wall]}
      </button>
    </Tooltip>
  );
}

function SandboxText({
  holds,
  remains,
  reason,
}: {
  holds: string;
  remains: string;
  reason: string;
}) {
  return (
    <>
      <p>This code runs in a separate process: {holds}.</p>
      <p className="mt-1 text-muted">Note: {remains}.</p>
      {reason ? (
        <p className="mt-1 text-muted">No stronger sandbox on this machine: {reason}</p>
      ) : null}
    </>
  );
}
