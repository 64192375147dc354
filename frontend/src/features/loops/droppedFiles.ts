/** The files of a drop; of a folder of a run the loop that it ran, of any other folder the loops right in it. */

const RUN_SPEC = "spec.yaml";
const LOOP = /\.(ya?ml|png)$/i;

/** To be called while the drop is handled: later the browser has forgotten it. */
export async function droppedFiles(transfer: DataTransfer | null): Promise<File[]> {
  const entries = [...(transfer?.items ?? [])].map((item) => item.webkitGetAsEntry?.() ?? null);
  const files = [...(transfer?.files ?? [])];
  if (!entries.some((entry) => entry?.isDirectory)) return files;
  const found = await Promise.all(entries.filter((entry) => entry !== null).map(filesOf));
  return found.flat();
}

async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (isFile(entry)) return [await fileOf(entry)];
  if (!isFolder(entry)) return [];
  const inside = (await listed(entry)).filter(isFile);
  const spec = inside.find(({ name }) => name === RUN_SPEC);
  const wanted = spec ? [spec] : inside.filter(({ name }) => LOOP.test(name));
  return Promise.all(wanted.map(fileOf));
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
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
