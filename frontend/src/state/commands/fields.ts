import type { Catalog, Json, JsonObject } from "@/api/types";
import { type Field, readSchema, sectionSchema } from "@/catalog/schema";
import { findPlace } from "@/document/place";
import { keepTrueName } from "@/document/trueName";
import type { Note } from "@/document/types";
import { isObject, type Path, setPath } from "@/lib/paths";
import { defineCommand } from "../document/command";

export interface SetValue {
  path: Path;
  /** `undefined` puts the field back to its default. */
  value: Json | undefined;
  /** How many keys of the path stay, empty or not, when a value below them is removed. */
  keep?: number;
}

export const setValue = defineCommand<SetValue>(
  "Change setting",
  (draft, { path, value, keep }) => {
    const place = findPlace(draft, path);
    setPath(place.root, place.path, value, keep);
    if (path[0] === "hardware" || path[0] === "nodes") keepTrueName(draft);
  },
);

interface SetField extends SetValue {
  node: string;
  /** Other settings of the node that change with it; `undefined` takes one out. */
  also?: Readonly<Record<string, Json | undefined>>;
}

export const setField = defineCommand<SetField>(
  "Change field",
  (draft, { node, path, value, keep, also = {} }) => {
    const data = draft.nodes[node];
    if (!data) return;
    setPath(data, path, value, keep);
    for (const [name, other] of Object.entries(also)) setPath(data, [name], other);
    keepTrueName(draft);
  },
);

interface SetFields extends Omit<SetField, "node"> {
  nodes: readonly string[];
}

export const setFields = defineCommand<SetFields>("Change fields", (draft, { nodes, ...field }) => {
  for (const node of nodes) setField.recipe(draft, { node, ...field });
});

interface SetSource {
  node: string;
  source: JsonObject;
  columns: Readonly<Record<string, string>>;
}

/** Other rows for a dataset, and what their columns are. */
export const setSource = defineCommand<SetSource>(
  "Change source",
  (draft, { node, source, columns }) => {
    const data = draft.nodes[node];
    if (!data) return;
    data.source = source;
    if (Object.keys(columns).length > 0) data.columns = { ...columns };
    else delete data.columns;
  },
);

const PLAIN = new Set<Field["shape"]>(["number", "object", "text"]);

/** Run on a preset; a machine that was described field by field goes. */
export const setHardware = defineCommand<{ catalog: Catalog; preset: string }>(
  "Change hardware",
  (draft, { catalog, preset }) => {
    const hardware = isObject(draft.rest.hardware) ? draft.rest.hardware : {};
    const described = describing(catalog);
    const kept = Object.entries(hardware).filter(([name]) => !described.has(name));
    draft.rest.hardware = { ...Object.fromEntries(kept), preset };
    keepTrueName(draft);
  },
);

/** Run on a machine that is described by these fields, and by no others. */
export const describeHardware = defineCommand<{ catalog: Catalog; values: JsonObject }>(
  "Describe hardware",
  (draft, { catalog, values }) => {
    const hardware = isObject(draft.rest.hardware) ? draft.rest.hardware : {};
    const described = describing(catalog).add("preset");
    const kept = Object.entries(hardware).filter(([name]) => !described.has(name));
    draft.rest.hardware = { ...Object.fromEntries(kept), ...values };
    keepTrueName(draft);
  },
);

/** What describes a machine beside the name of a preset: fields that may be left out. */
function describing(catalog: Catalog): Set<string> {
  const schema = sectionSchema(catalog, "hardware");
  const field = schema && readSchema(schema);
  const properties = field?.shape === "object" ? field.properties() : [];
  const plain = properties.filter(
    ({ field: one }) => one.isNullable && one.widget === null && PLAIN.has(one.shape),
  );
  return new Set(plain.map(({ name }) => name));
}

interface SetNote {
  id: string;
  /** What changes; a note that is new begins with all of it. `null` takes the note away. */
  note: Partial<Note> | null;
}

export const setNote = defineCommand<SetNote>("Edit note", (draft, { id, note }) => {
  const old = draft.notes?.[id];
  if (note === null) {
    if (!draft.notes || !old) return;
    delete draft.notes[id];
    if (Object.keys(draft.notes).length === 0) delete draft.notes;
    return;
  }
  if (old) Object.assign(old, note);
  else if (note.at && note.size && note.text !== undefined) {
    draft.notes ??= {};
    draft.notes[id] = { at: note.at, size: note.size, text: note.text };
  }
});
