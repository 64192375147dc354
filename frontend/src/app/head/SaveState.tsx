import { Check, CloudOff, Eye, LoaderCircle, TriangleAlert } from "lucide-react";
import { useSync } from "@/state/document/context";
import { NOT_SAVED, type SyncState } from "@/state/sync/state";
import { Tooltip } from "@/ui/Tooltip";

const LOOK = {
  preset: { Icon: Eye, text: "Preset", className: "text-muted" },
  saved: { Icon: Check, text: "Saved", className: "text-muted" },
  unsaved: { Icon: LoaderCircle, text: "Saving", className: "text-muted" },
  saving: { Icon: LoaderCircle, text: "Saving", className: "text-muted" },
  offline: { Icon: CloudOff, text: "Offline", className: "text-warning" },
  conflict: { Icon: TriangleAlert, text: "Conflict", className: "text-error" },
  refused: { Icon: TriangleAlert, text: "Not saved", className: "text-error" },
} as const;

const HELP: Record<keyof typeof LOOK, string> = {
  preset: "You are viewing a preset. The first change, or a run, saves it as your own loop.",
  saved: "All changes are saved on the server.",
  unsaved: "Your changes are being saved to the server.",
  saving: "Your changes are being saved to the server.",
  offline:
    "The server is not responding. Your changes are kept in this browser and saved as soon as it is back.",
  conflict: "This loop was changed elsewhere. Choose which version to keep.",
  refused: "The server rejected the last change. It is kept in this browser.",
};

function shownState({ brokenText, save, revision }: SyncState): keyof typeof LOOK {
  if (brokenText) return "refused";
  return save === "saved" && revision === NOT_SAVED ? "preset" : save;
}

/** Whether the loop is saved, truthfully. */
export function SaveState() {
  const save = useSync(shownState);
  const message = useSync((state) => state.saveMessage);
  const isBroken = useSync((state) => state.brokenText !== null);
  const { Icon, text, className } = LOOK[save];
  const help = isBroken
    ? "The YAML is invalid, so it is not saved. It is kept in this browser."
    : (message ?? HELP[save]);
  return (
    <Tooltip text={help}>
      <span
        role="status"
        tabIndex={0}
        data-save={save}
        className={`flex items-center gap-1 whitespace-nowrap rounded-1 px-1 text-xs ${className}`}
      >
        <Icon
          size={13}
          aria-hidden="true"
          className={save === "saving" || save === "unsaved" ? "animate-spin" : ""}
        />
        {text}
      </span>
    </Tooltip>
  );
}
