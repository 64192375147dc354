/** The kinds of the catalog in their groups, and which of them fit a port. Pure. */
import type { Catalog, KindInfo } from "@/api/types";
import { canConnect, outputPort } from "@/document/canConnect";
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

/** No node has this name, so that a new one can be tried under it. */
const NEW = "";

/** The port of a new node that an edge from `from` would go to, or null where it cannot be joined. */
export function fittingPort(
  catalog: Catalog,
  document: LoopDocument,
  from: PortRef & { isOutput: boolean },
  kind: KindInfo,
): string | null {
  const nodes = { ...document.nodes, [NEW]: { kind: kind.kind } };
  const canJoin = (port: string) => {
    const own = { node: NEW, port };
    const [source, target] = from.isOutput ? [from, own] : [own, from];
    return canConnect(catalog, { ...document, nodes }, source, target).ok;
  };
  if (!from.isOutput) return kind.outputs.find((port) => canJoin(port.name))?.name ?? null;
  const type = outputPort(catalog, document, from)?.type;
  const fits = kind.inputs.filter((port) => canJoin(port.name));
  // Data before teaching: a new node is first of all given something to work on.
  return (
    (
      fits.find((port) => port.type === type && !port.teaching) ??
      fits.find((port) => !port.teaching) ??
      fits[0]
    )?.name ?? null
  );
}
