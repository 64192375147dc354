/** What a source is, in a few words: its kind, and the first value that its kind calls telling. Pure. */
import type { Json, KindInfo } from "@/api/types";
import { readPath } from "@/lib/paths";

export function sourceText(kind: KindInfo | undefined, data: Json | undefined): string {
  if (!kind) return "";
  const telling = kind.summary
    .filter((path) => !path.includes("*"))
    .map((path) => readPath(data, path.split(".")))
    .find((value) => typeof value === "string" && value !== "");
  return typeof telling === "string"
    ? `${kind.title.toLowerCase()} · ${telling}`
    : kind.title.toLowerCase();
}
