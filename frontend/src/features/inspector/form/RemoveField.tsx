import { X } from "lucide-react";
import type { Path } from "@/lib/paths";
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
