import type { Catalog, KindInfo, ModeInfo } from "@/api/types";
import { offersKind } from "@/catalog/modes";
import { scoreKind } from "@/catalog/search";
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

export function splitByMode(
  groups: readonly KindGroup[],
  mode: ModeInfo,
): { offered: KindGroup[]; others: KindInfo[] } {
  const offered = groups.map((group) => ({
    ...group,
    kinds: group.kinds.filter((kind) => offersKind(mode, kind)),
  }));
  return {
    offered: offered.filter((group) => group.kinds.length > 0),
    others: groups.flatMap(({ kinds }) => kinds.filter((kind) => !offersKind(mode, kind))),
  };
}

export function otherModes(kinds: KindInfo[]): KindGroup {
  return { name: "other modes", title: "Other modes", kinds };
}

export function searchGroups(groups: readonly KindGroup[], search: string): KindGroup[] {
  if (search.trim() === "") return [...groups];
  const best = (group: KindGroup) => (group.kinds[0] ? scoreKind(group.kinds[0], search) : 0);
  return groups
    .map((group) => ({
      ...group,
      kinds: group.kinds
        .filter((kind) => scoreKind(kind, search) > 0)
        .toSorted((a, b) => scoreKind(b, search) - scoreKind(a, search)),
    }))
    .filter((group) => group.kinds.length > 0)
    .toSorted((a, b) => best(b) - best(a));
}
