/** Gives a loop rows: of a file, which is stored beside the loops, or that were pasted. Their columns are mapped by name. */
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { previewRows, uploadFile } from "@/api/routes";
import type { Catalog, JsonObject, ModeInfo } from "@/api/types";
import { beginNode } from "@/document/beginNode";
import { rememberColumns } from "@/document/columnsAt";
import { rowsKind } from "@/document/datasets";
import { freeName } from "@/document/names";
import { naturalEdges } from "@/document/natural";
import { columnsOf, guessColumns, pastedRows } from "@/document/tables";
import type { LoopDocument } from "@/document/types";
import { freePlace, placeOnward } from "@/graph/freePlace";
import { formatBytes, formatPlural } from "@/lib/format";
import { reveal } from "./canvas";
import { setSource } from "./commands/fields";
import { addNode } from "./commands/nodes";
import type { OpenLoop } from "./document/context";
import { select, useSelection } from "./selection";

/** What the service takes in one request, less what Base64 adds. */
const MAX_BYTES = 6_000_000;
/** Rows that are written into the loop itself; more of them are stored as a file. */
const MAX_INLINE = 50;
const CHUNK = 0x8000;
/** The name of the node in a loop that is only read for its columns. */
const NODE = "rows";

type Open = Pick<OpenLoop, "catalog" | "store"> & { mode: ModeInfo };

interface Where {
  /** The dataset that the rows are for; a new one where it is none. */
  node?: string | undefined;
  at?: { x: number; y: number } | undefined;
}

/** The node of the dataset that reads the file now; null where that failed, which was told. */
export async function addFile(open: Open, file: File, where: Where): Promise<string | null> {
  if (file.size > MAX_BYTES) {
    toast.error(`${file.name} is larger than ${formatBytes(MAX_BYTES)}.`, {
      description: "Put it into the folder of the loops, and give its path in a dataset.",
    });
    return null;
  }
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const { path } = await uploadFile({ name: file.name, content: toBase64(bytes) });
    const source = { type: "file", path };
    const columns =
      columnsOf(file.name, new TextDecoder().decode(bytes)) ??
      (await readColumns(open.catalog, source));
    rememberColumns(path, columns);
    return put(open, source, guessColumns(columns), `Add ${file.name}`, where);
  } catch (error) {
    toast.error(`${file.name} was not added.`, { description: errorMessage(error) });
    return null;
  }
}

/** A new dataset that reads a file which is on the server already. */
export async function addStored(open: Open, path: string): Promise<void> {
  const source = { type: "file", path };
  const columns = await readColumns(open.catalog, source);
  rememberColumns(path, columns);
  put(open, source, guessColumns(columns), `Add ${path.split("/").at(-1)}`, {});
}

/** Whether the text has rows, which are a dataset then. */
export async function addRows(open: Open, text: string, where: Where): Promise<boolean> {
  const rows = pastedRows(text);
  if (rows === null) return false;
  if (rows.length > MAX_INLINE) {
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    return (await addFile(open, new File([lines], "pasted.jsonl"), where)) !== null;
  }
  const columns = guessColumns([...new Set(rows.flatMap((row) => Object.keys(row)))]);
  const label = `Paste ${formatPlural(rows.length, "row")}`;
  put(open, { type: "inline", rows }, columns, label, where);
  return true;
}

/** The dataset that is selected, alone. */
export function chosenDataset(catalog: Catalog, document: LoopDocument): string | undefined {
  const [only, ...more] = useSelection.getState().nodes;
  return more.length === 0 && isDataset(catalog, document, only) ? only : undefined;
}

function isDataset(
  catalog: Catalog,
  document: LoopDocument,
  node: string | undefined,
): node is string {
  return node !== undefined && document.nodes[node]?.kind === rowsKind(catalog)?.kind;
}

function put(
  { catalog, store, mode }: Open,
  source: JsonObject,
  columns: Record<string, string>,
  label: string,
  { node, at }: Where,
): string {
  const { document } = store.getState();
  if (isDataset(catalog, document, node)) {
    store.dispatch(setSource, { node, source, columns }, { label });
    select({ nodes: [node] });
    return node;
  }
  const kind = rowsKind(catalog);
  if (!kind) throw new Error("This server has no datasets.");
  const id = freeName(kind.kind, new Set(Object.keys(document.nodes)));
  const { columns: _, ...begun } = beginNode(catalog, document, kind, mode);
  const mapped = Object.keys(columns).length > 0 ? { columns } : {};
  const chosen = useSelection.getState().nodes.at(-1);
  const place = at
    ? freePlace(catalog, document, kind, at)
    : placeOnward(catalog, document, kind, { x: 0, y: 0 }, chosen);
  const data = { ...begun, kind: kind.kind, source, ...mapped };
  const edges = naturalEdges(catalog, document, id, data);
  store.dispatch(addNode, { id, data, position: [place.x, place.y], edges }, { label });
  select({ nodes: [id] });
  reveal(id);
  return id;
}

function toBase64(bytes: Uint8Array): string {
  let letters = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    letters += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(letters);
}

/** The columns of a file that the page cannot read itself. */
async function readColumns(catalog: Catalog, source: JsonObject): Promise<string[]> {
  const kind = rowsKind(catalog)?.kind ?? NODE;
  const yaml = JSON.stringify({
    coloop: 1,
    name: "preview",
    nodes: { [NODE]: { kind, source } },
    edges: [],
    schedule: { steps: 1 },
  });
  const page = await previewRows({ what: "rows", yaml, node: NODE, offset: 0, count: 1 });
  return page.columns.map(({ name }) => name);
}
