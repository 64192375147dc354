import { useMode } from "@/document/useMode";
import { formatPlural } from "@/lib/format";
import { Button } from "@/ui/Button";
import { RichText } from "@/ui/RichText";
import type { OtherModes } from "./useOtherModes";

/** Says what the form leaves to other modes, above all what of it is set, and shows it. */
export function OtherModesNote({ isAny, set, isShown, show }: OtherModes) {
  const mode = useMode();
  if (!isAny) return null;
  const names = set.map((path) => `\`${path}\``).join(", ");
  return (
    <div className="flex items-start gap-2 border-line border-t py-1.5 text-muted text-xs">
      <p className="min-w-0 flex-1 py-1">
        {isShown ? (
          "Settings of all modes are shown."
        ) : set.length === 0 ? (
          "Settings of other modes are left out."
        ) : (
          <RichText
            text={`${formatPlural(set.length, "setting")} of other modes ${set.length === 1 ? "is" : "are"} set: ${names}.`}
          />
        )}
      </p>
      <Button size="small" look="quiet" onClick={() => show(!isShown)}>
        {isShown ? `Only ${mode.title.toLowerCase()}` : "Show all"}
      </Button>
    </div>
  );
}
