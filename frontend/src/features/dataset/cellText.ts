/** A value of a row in a cell of a table; a chat by its turns. Pure. */
export function cellText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    const turns = value.map(turn);
    if (turns.length > 0 && turns.every((one) => one !== null)) return turns.join("\n");
  }
  return JSON.stringify(value);
}

function turn(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return null;
  if (!("role" in value) || !("content" in value)) return null;
  return `${String(value.role)}: ${String(value.content)}`;
}
