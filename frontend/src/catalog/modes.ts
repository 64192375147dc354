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
export interface OfOtherModes {
  fields: ReadonlySet<string>;
  algorithms: ReadonlySet<string>;
  ports: ReadonlySet<string>;
  outputs: ReadonlySet<string>;
}

const NOTHING: OfOtherModes = {
  fields: new Set(),
  algorithms: new Set(),
  ports: new Set(),
  outputs: new Set(),
};

export function ofOtherModes(mode: ModeInfo, kind: string): OfOtherModes {
  const left = mode.of_kind[kind];
  if (!left) return NOTHING;
  return {
    fields: new Set(left.fields),
    algorithms: new Set(left.algorithms),
    ports: new Set(left.ports),
    outputs: new Set(left.outputs),
  };
}

export function setAmong(node: Json | undefined, fields: Iterable<string>): string[] {
  return [...fields].filter((path) => {
    const value = readPath(node, parsePath(path));
    return (
      value !== undefined && value !== null && !(isObject(value) && Object.keys(value).length === 0)
    );
  });
}
