/** What a mode of loops offers, and what it leaves to other modes. It forbids nothing. Pure. */
import type { Catalog, Json, KindInfo, ModeInfo } from "@/api/types";
import { isObject, parsePath, readPath } from "@/lib/paths";

export function modeNamed(catalog: Catalog, name: Json | undefined): ModeInfo {
  const found = catalog.modes.find((mode) => mode.name === name) ?? catalog.modes[0];
  if (!found) throw new Error("The catalog has no modes.");
  return found;
}

export function offersKind(mode: ModeInfo, kind: Pick<KindInfo, "kind">): boolean {
  return mode.kinds.includes(kind.kind);
}

/** What of a kind is left to other modes: paths of its settings, names of algorithms, inputs and outputs. */
type OfOtherModes = Pick<
  ModeInfo["of_kind"][string],
  "fields" | "algorithms" | "ports" | "outputs"
>;

export const NOTHING_HIDDEN: OfOtherModes = { fields: [], algorithms: [], ports: [], outputs: [] };

export function ofOtherModes(mode: ModeInfo, kind: string | undefined): OfOtherModes {
  return mode.of_kind[kind ?? ""] ?? NOTHING_HIDDEN;
}

export function setAmong(node: Json | undefined, fields: readonly string[]): string[] {
  return fields.filter((path) => {
    const value = readPath(node, parsePath(path));
    return (
      value !== undefined && value !== null && !(isObject(value) && Object.keys(value).length === 0)
    );
  });
}
