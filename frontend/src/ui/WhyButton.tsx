import { CircleHelp } from "lucide-react";
import { explain } from "@/state/dialogs";

export function WhyButton({ code }: { code: string }) {
  return (
    <button
      type="button"
      title={`What ${code} means, and what to do`}
      className="inline-flex h-6 shrink-0 items-center gap-1 rounded-1 px-1 text-accent-text text-xs hover:underline"
      onClick={(event) => {
        event.stopPropagation();
        explain({ code });
      }}
    >
      <CircleHelp size={12} aria-hidden="true" />
      Why?
    </button>
  );
}
