import { toast } from "sonner";
import type { SampleRow } from "@/api/types";
/** Prompts and completions as text: a chat is written out turn by turn. Pure. */
import { isObject } from "@/lib/paths";

export function sampleText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    return value
      .map((turn) =>
        isObject(turn) && "content" in turn
          ? `${String(turn.role ?? "")}: ${sampleText(turn.content)}`
          : sampleText(turn),
      )
      .join("\n");
  }
  return JSON.stringify(value);
}

export function copySample(row: SampleRow): void {
  navigator.clipboard.writeText(JSON.stringify(row, null, 2)).then(
    () => toast("Copied the sample"),
    () => toast.error("The browser blocked access to the clipboard."),
  );
}
