import { Lock, LockOpen } from "lucide-react";
import { useDocument, useOpenLoop } from "@/document/context";
import { setLock, useIsLocked, useIsSolvable } from "@/document/locks";
import { joinPath, type Path } from "@/lib/paths";
import { IconButton } from "@/ui/IconButton";

/** Keeps a setting from being changed when the loop is fitted into memory; only where fitting may change it. */
export function SolverLock({ node, path, label }: { node: string; path: Path; label: string }) {
  const { store, runId } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  const full = joinPath(["nodes", node, ...path]);
  const isLocked = useIsLocked(full);
  const isSolvable = useIsSolvable(node, joinPath(path));
  if (!isSolvable || isReadonly || runId !== null) return null;
  const Mark = isLocked ? Lock : LockOpen;
  return (
    <IconButton
      label={isLocked ? `Let fitting change ${label}` : `Keep fitting from changing ${label}`}
      size="small"
      aria-pressed={isLocked}
      className={`size-5 shrink-0 ${isLocked ? "text-accent-text" : "opacity-0 focus-visible:opacity-100 group-hover/field:opacity-100"}`}
      onClick={() =>
        store
          .getState()
          .dispatch(
            setLock,
            { path: full, isLocked: !isLocked },
            { label: isLocked ? "Unlock setting" : "Lock setting" },
          )
      }
    >
      <Mark size={12} />
    </IconButton>
  );
}
