/** What stands on an edge. Pure. */
import type { Catalog } from "@/api/types";
import { portRef } from "@/document/edges";
import { edgeText } from "@/document/edgeText";
import { textWidth } from "@/document/textWidth";
import type { Edge } from "@/document/types";
import type { Way } from "@/document/ways";

/** The longest rate that stands on an edge. */
const RATE = "44.4k/s";
/** Around the text of a label, and the sign of learning before it. */
const AROUND = 18;
const SIGN = 17;

/** What an edge says of itself; what is learned is named in any case. */
export function wayText(catalog: Catalog, edge: Edge, way: Way): string {
  return [wayName(edge, way), edgeText(catalog, edge)].filter(Boolean).join(" · ");
}

/** What is learned, where the edge has no name of its own. */
export function wayName(edge: Edge, way: Way): string {
  if (way !== "learning" || typeof edge.id === "string") return "";
  return portRef(edge.to).port.replaceAll("_", " ");
}

/** All edges that one line stands for. */
export function bundleTitle(keys: readonly string[]): string {
  return [`${keys.length} edges`, ...keys].join("\n");
}

/** Room is kept for a rate before there is one, so that nothing moves when it comes. */
export function labelWidth(text: string, way: Way, isLive: boolean): number {
  const words = [text, ...(isLive && way !== "tie" ? [RATE] : [])].filter(Boolean).join(" · ");
  if (words === "") return 0;
  return textWidth(words, 12) + AROUND + (way === "learning" ? SIGN : 0);
}
