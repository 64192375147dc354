import type { Json } from "@/api/types";
import { defaultAt } from "@/document/fieldAt";
import { readDocumentPath } from "@/document/place";
import type { OpenLoop } from "@/state/document/context";
import { useRunEdits } from "@/state/runEdits";

/** A change to send to a run. The run is told values: a field that is put back is told its default. */
export function noteEdit(
  { catalog, store }: Pick<OpenLoop, "catalog" | "store">,
  path: string,
  value: Json | undefined,
): void {
  const { document } = store.getState();
  const told =
    value === undefined ? defaultAt(catalog, document, readDocumentPath(document, path)) : value;
  // A field without a default has to be filled first.
  if (told !== undefined) useRunEdits.getState().set(path, told);
}
