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

/** The last part of a path, after its node if another path ends in the same one. */
export function settingName(path: string, paths: readonly string[]): string {
  const parts = path.split(".");
  const last = parts.at(-1) ?? path;
  const isUnique = paths.filter((other) => other.split(".").at(-1) === last).length < 2;
  return isUnique || parts[0] !== "nodes" ? last : `${parts[1]} ${last}`;
}

export function entryText(entry: JsonObject): string {
  const { when, do: action, path, from, to } = entry;
  if (isObject(when)) {
    const { metric, for: times, ...bounds } = when;
    const condition = Object.entries(bounds)
      .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
      .join(" ");
    const consequence = isObject(action)
      ? Object.entries(action)
          .map(
            ([name, value]) =>
              name.replaceAll("_", " ") + (value === true ? "" : ` ${truncated(value)}`),
          )
          .join(", ")
      : "";
    const duration = times === undefined ? "" : ` for ${String(times)}`;
    return `${String(metric ?? "?")} ${condition}${duration} → ${consequence || "?"}`;
  }
  if (path !== undefined) return `${String(path)}: ${String(from)} → ${String(to)}`;
  return JSON.stringify(entry);
}

function truncated(value: Json | undefined): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text && text.length > 32 ? `${text.slice(0, 31)}…` : (text ?? "");
}
