const LOOP_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const NODE_NAME = /^[a-z][a-z0-9_]*$/;

const LOOP_SIGNS = /[^A-Za-z0-9._-]/gu;

/** Why a loop cannot be called so, or null: what is wrong with it, and what may be there. */
export function loopNameProblem(name: string): string | null {
  if (LOOP_NAME.test(name)) return null;
  if (name.trim() === "") return "A loop needs a name.";
  const signs = [...new Set(name.match(LOOP_SIGNS) ?? [])].map((sign) =>
    /\s/u.test(sign) ? "a space" : `“${sign}”`,
  );
  if (signs.length > 0) {
    const last = signs.at(-1);
    const list = signs.length === 1 ? last : `${signs.slice(0, -1).join(", ")} or ${last}`;
    return `A name cannot contain ${list}: only letters, digits, dots, dashes and underscores.`;
  }
  return `A name must start with a letter or a digit, not with “${name[0]}”.`;
}

export function loopNameNear(name: string): string {
  return name
    .trim()
    .replaceAll(LOOP_SIGNS, "-")
    .replaceAll(/-{2,}/g, "-")
    .replace(/^[._-]+/, "")
    .replace(/-+$/, "");
}

export function nameProblem(name: string, taken: ReadonlySet<string>, own?: string): string | null {
  if (name === "") return "A node needs a name.";
  if (!NODE_NAME.test(name)) {
    return "Use lowercase letters, digits and underscores, and start with a letter.";
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
