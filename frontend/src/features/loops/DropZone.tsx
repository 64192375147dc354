import { FileUp } from "lucide-react";
import { type ReactNode, useState } from "react";
import { toast } from "sonner";
import { DATA_FILE } from "@/document/dataFiles";
import { useFileTaker } from "@/state/canvas";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { useImport } from "./useImport";

const NO_LOOP = "A run's folder has its loop in spec.yaml.";

export function DropZone({ children }: { children: ReactNode }) {
  const [isOver, setOver] = useState(false);
  const open = useImport();
  const takesData = useFileTaker((state) => state.take !== null);

  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  const over = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    setOver(true);
  };
  const drop = async (event: DragEvent) => {
    setOver(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    // An editor under the pointer would put the file's text in.
    event.stopPropagation();
    const at = { x: event.clientX, y: event.clientY };
    const dropped = await droppedFiles(event.dataTransfer);
    const { take } = useFileTaker.getState();
    const data = take ? dropped.filter(({ name }) => DATA_FILE.test(name)) : [];
    const files = dropped.filter((file) => !data.includes(file));
    if (data.length > 0) take?.(data, at);
    if (files.length > 0) void open(files);
    else if (data.length > 0) return;
    else toast.error("No loop found in that folder.", { description: NO_LOOP });
  };
  useWindowEvent("dragenter", over);
  useWindowEvent("dragover", over);
  // Within the page a drag leaves one thing for another.
  useWindowEvent("dragleave", (event) => event.relatedTarget === null && setOver(false));
  useWindowEvent("drop", (event) => void drop(event), { capture: true });

  return (
    <>
      {children}
      {isOver ? (
        <div className="pointer-events-none fixed inset-2 z-50 flex items-center justify-center rounded-3 border-2 border-accent border-dashed bg-surface/80">
          <p className="flex items-center gap-2 font-medium text-base">
            <FileUp size={20} />
            {takesData
              ? "Drop a loop to open it, or a data file to add its rows"
              : "Drop to open as a new loop"}
          </p>
        </div>
      ) : null}
    </>
  );
}

const RUN_SPEC = "spec.yaml";
const LOOP = /\.(ya?ml|png)$/i;

/**
 * The files of a drop; of a folder of a run the loop that it ran, of any other folder the loops right in it. To be
 * called while the drop is handled: later the browser has forgotten it.
 */
async function droppedFiles(transfer: DataTransfer | null): Promise<File[]> {
  const entries = [...(transfer?.items ?? [])].flatMap((item) => item.webkitGetAsEntry?.() ?? []);
  const files = [...(transfer?.files ?? [])];
  if (!entries.some((entry) => entry.isDirectory)) return files;
  return (await Promise.all(entries.map(filesOf))).flat();
}

async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (isFile(entry)) return [await fileOf(entry)];
  const inside = (await listed(entry as FileSystemDirectoryEntry)).filter(isFile);
  const spec = inside.find(({ name }) => name === RUN_SPEC);
  const wanted = spec ? [spec] : inside.filter(({ name }) => LOOP.test(name));
  return Promise.all(wanted.map(fileOf));
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((done, fail) => entry.file(done, fail));
}

/** A reader gives a part at a time, and nothing at the end. */
async function listed(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((done, fail) =>
      reader.readEntries(done, fail),
    );
    if (part.length === 0) return found;
    found.push(...part);
  }
}
