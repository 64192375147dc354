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
  const text = edgeText(catalog, edge);
  if (way !== "learning" || typeof edge.id === "string") return text;
  return [portRef(edge.to).port.replaceAll("_", " "), text].filter(Boolean).join(" · ");
}

/** Room is kept for a rate before there is one, so that nothing moves when it comes. */
export function labelWidth(text: string, way: Way, isLive: boolean): number {
  const words = [text, ...(isLive && way !== "tie" ? [RATE] : [])].filter(Boolean).join(" · ");
  if (words === "") return 0;
  return textWidth(words, 12) + AROUND + (way === "learning" ? SIGN : 0);
}
