import { RotateCcw, X } from "lucide-react";
import type { Path } from "@/lib/paths";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { useForm } from "./FormContext";

interface RemoveFieldProps {
  name: string;
  path: Path;
  isLocked: boolean;
  onRemove?: (() => void) | undefined;
}

export function RemoveField({ name, path, isLocked, onRemove }: RemoveFieldProps) {
  const form = useForm();
  return (
    <IconButton
      label={`Remove ${name}`}
      size="small"
      disabled={isLocked}
      onClick={onRemove ?? (() => form.write(path, undefined))}
      icon={<X size={12} />}
    />
  );
}

interface ResetFieldProps {
  name: string;
  path: Path;
  className: string;
}

/** Seen while the pointer or the focus is on its field. */
export function ResetField({ name, path, className }: ResetFieldProps) {
  const form = useForm();
  return (
    <IconButton
      label={`Reset ${name} to its default`}
      size="small"
      className={classes("opacity-0 focus-visible:opacity-100", className)}
      onClick={() => form.write(path, undefined)}
      icon={<RotateCcw size={12} />}
    />
  );
}
