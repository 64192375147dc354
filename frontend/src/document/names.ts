/** Names of loops and nodes: what is allowed, and a free one near a wish. Pure. */

const LOOP_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const NODE_NAME = /^[a-z][a-z0-9_]*$/;

/** What the name of a loop is made of. */
export const LOOP_NAMES = "Letters, digits, dots, dashes and underscores";

export function isLoopName(name: string): boolean {
  return LOOP_NAME.test(name);
}

/** Why a name cannot be taken, or null. */
export function nameProblem(name: string, taken: ReadonlySet<string>, own?: string): string | null {
  if (name === "") return "A node needs a name.";
  if (!NODE_NAME.test(name)) {
    return "Use small letters, digits and underscores, and begin with a letter.";
  }
  if (name !== own && taken.has(name)) return `"${name}" is already in use.`;
  return null;
}

export function freeName(wish: string, taken: ReadonlySet<string>): string {
  const base = wish.replaceAll(/[^a-z0-9_]/g, "_").replace(/^[^a-z]+/, "") || "node";
  if (!taken.has(base)) return base;
  const stem = base.replace(/_\d+$/, "");
  for (let number = 2; ; number += 1) {
    const name = `${stem}_${number}`;
    if (!taken.has(name)) return name;
  }
}
