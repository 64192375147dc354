import { Sparkles } from "lucide-react";
import { useDecided } from "@/document/decided";
import type { Path } from "@/lib/paths";
import { joinPath } from "@/lib/paths";
import { useWhenStill } from "@/session/choosing";
import { RichText } from "@/ui/RichText";
import { Tooltip } from "@/ui/Tooltip";

/** What the compiler decided where the loop leaves a field open; the reason on hover and focus. */
export function DecidedNote({ node, path, label }: { node: string; path: Path; label: string }) {
  const decided = useWhenStill(useDecided(node, joinPath(path)));
  if (!decided) return null;
  return (
    <Tooltip text={<RichText text={decided.why} />} side="left">
      <button
        type="button"
        aria-label={`Why ${label} is ${decided.text}`}
        className="mt-0.5 flex max-w-full items-center gap-1 rounded-1 text-accent-text text-xs"
      >
        <Sparkles size={12} aria-hidden="true" className="shrink-0" />
        <span className="truncate">{decided.text}, chosen</span>
      </button>
    </Tooltip>
  );
}
