import { FileUp } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { toast } from "sonner";
import { droppedFiles } from "./droppedFiles";
import { useImport } from "./useImport";

const NO_LOOP = "A run's folder has its loop in spec.yaml.";

/** Files dropped anywhere on the window open as new loops. */
export function DropZone({ children }: { children: ReactNode }) {
  const [isOver, setOver] = useState(false);
  const open = useImport();

  useEffect(() => {
    let depth = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const openDropped = async (transfer: DataTransfer | null) => {
      const files = await droppedFiles(transfer);
      if (files.length > 0) void open(files);
      else toast.error("No loop found in that folder.", { description: NO_LOOP });
    };
    const enter = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      depth -= 1;
      if (depth <= 0) setOver(false);
    };
    const over = (event: DragEvent) => {
      if (hasFiles(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      // An editor under the pointer would put the file's text in.
      event.stopPropagation();
      void openDropped(event.dataTransfer);
    };
    window.addEventListener("dragenter", enter);
    window.addEventListener("dragleave", leave);
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop, { capture: true });
    return () => {
      window.removeEventListener("dragenter", enter);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop, { capture: true });
    };
  }, [open]);

  return (
    <>
      {children}
      {isOver ? (
        <div className="pointer-events-none fixed inset-2 z-50 flex items-center justify-center rounded-3 border-2 border-accent border-dashed bg-surface/80">
          <p className="flex items-center gap-2 font-medium text-base">
            <FileUp size={20} /> Drop to open as a new loop
          </p>
        </div>
      ) : null}
    </>
  );
}
