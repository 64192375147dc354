/** The kinds of the catalog in their groups. Pure. */
import type { Catalog, KindInfo } from "@/api/types";
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
