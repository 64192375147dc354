/** The kinds of the catalog in their groups, and which of them fit a port. Pure. */
import type { Catalog, KindInfo } from "@/api/types";
import { accepts, inputPort, outputPort } from "@/document/canConnect";
import type { LoopDocument, PortRef } from "@/document/types";
import { formatName } from "@/lib/format";

export interface KindGroup {
  name: string;
  title: string;
  kinds: KindInfo[];
}

export function groupKinds(catalog: Catalog): KindGroup[] {
  const groups: KindGroup[] = (catalog.groups ?? []).map(({ name, title }) => ({
    name,
    title,
    kinds: [],
  }));
  for (const kind of Object.values(catalog.kinds)) {
    let group = groups.find((one) => one.name === kind.group);
    if (!group) {
      group = { name: kind.group, title: formatName(kind.group), kinds: [] };
      groups.push(group);
    }
    group.kinds.push(kind);
  }
  return groups.filter((group) => group.kinds.length > 0);
}

export function matchesSearch(kind: KindInfo, search: string): boolean {
  const text = `${kind.kind} ${kind.title} ${kind.help} ${kind.group}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The port of a kind that an edge from `from` would go to, or null where none fits. */
export function fittingPort(
  catalog: Catalog,
  document: LoopDocument,
  from: PortRef & { isOutput: boolean },
  kind: KindInfo,
): string | null {
  if (from.isOutput) {
    const type = outputPort(catalog, document, from)?.type;
    if (type === undefined) return null;
    const fits = kind.inputs.filter((port) => accepts(catalog, port.type, type));
    // Data before teaching: a new node is first of all given something to work on.
    return (
      (
        fits.find((port) => port.type === type && !port.teaching) ??
        fits.find((port) => !port.teaching) ??
        fits[0]
      )?.name ?? null
    );
  }
  const type = inputPort(catalog, document, from)?.type;
  if (type === undefined) return null;
  return kind.outputs.find((port) => accepts(catalog, type, port.type))?.name ?? null;
}
