import type { Json, JsonObject } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";

export function phaseLength(phase: JsonObject): string {
  const { steps, epochs, until } = phase;
  if (typeof steps === "number") return formatPlural(steps, "step");
  if (typeof epochs === "number") return formatPlural(epochs, "epoch");
  if (isObject(epochs))
    return `${String(epochs.count ?? "?")} epochs of ${String(epochs.of ?? "?")}`;
  if (until !== undefined && until !== null) return `until ${listText(until)}`;
  return "no end yet";
}

export function listText(value: Json | undefined): string {
  if (Array.isArray(value)) return value.map(String).join(", ");
  return value === undefined || value === null ? "" : String(value);
}

/** The last word of a path, with its node where another of the paths ends alike. */
export function settingName(path: string, all: readonly string[]): string {
  const words = path.split(".");
  const last = words.at(-1) ?? path;
  const isAlone = all.filter((other) => other.split(".").at(-1) === last).length < 2;
  return isAlone || words[0] !== "nodes" ? last : `${words[1]} ${last}`;
}

export function entryText(entry: JsonObject): string {
  const { when, do: action, path, from, to } = entry;
  if (isObject(when)) {
    const { metric, for: times, ...bounds } = when;
    const test = Object.entries(bounds)
      .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
      .join(" ");
    const act = isObject(action)
      ? Object.entries(action)
          .map(
            ([name, value]) =>
              name.replaceAll("_", " ") + (value === true ? "" : ` ${short(value)}`),
          )
          .join(", ")
      : "";
    const again = times === undefined ? "" : ` for ${String(times)}`;
    return `${String(metric ?? "?")} ${test}${again} → ${act || "?"}`;
  }
  if (path !== undefined) return `${String(path)}: ${String(from)} → ${String(to)}`;
  return JSON.stringify(entry);
}

function short(value: Json | undefined): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text && text.length > 32 ? `${text.slice(0, 31)}…` : (text ?? "");
}
