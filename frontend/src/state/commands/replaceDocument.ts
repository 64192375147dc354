import type { LoopDocument } from "@/document/types";
import { deepEqual } from "@/lib/paths";
import { defineCommand } from "../document/command";

/** The whole loop at once (text edit, taking another version); parts that are equal stay the same objects. */
export const replaceDocument = defineCommand<{ document: LoopDocument }>(
  "Replace loop",
  (draft, { document }) => {
    if (draft.name !== document.name) draft.name = document.name;
    replaceRecord(draft.nodes, document.nodes);
    replaceRecord(draft.layout, document.layout);
    replaceRecord(draft.rest, document.rest);
    if (!deepEqual(draft.edges, document.edges)) draft.edges = document.edges;
    for (const part of ["identities", "notes", "groups", "unread"] as const) {
      if (deepEqual(draft[part], document[part])) continue;
      if (document[part]) Object.assign(draft, { [part]: document[part] });
      else delete draft[part];
    }
  },
);

function replaceRecord(draft: Record<string, unknown>, wanted: Record<string, unknown>): void {
  const order = Object.keys(draft).filter((key) => key in wanted);
  const newOrder = Object.keys(wanted).filter((key) => key in draft);
  if (order.join("\n") !== newOrder.join("\n")) {
    for (const key of Object.keys(draft)) delete draft[key];
    Object.assign(draft, wanted);
    return;
  }
  for (const key of Object.keys(draft)) if (!(key in wanted)) delete draft[key];
  for (const [key, value] of Object.entries(wanted)) {
    if (!deepEqual(draft[key], value)) draft[key] = value;
  }
}
