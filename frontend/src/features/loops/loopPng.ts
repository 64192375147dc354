/** A picture of the loop with its YAML inside; dropped on the page it opens as the loop again. */
import { isPng, readPngText, writePngText } from "@/lib/png";
import { drawGraph } from "./picture";

const KEYWORD = "coloop";

export async function makeLoopPng(yaml: string): Promise<Uint8Array> {
  return writePngText(await drawGraph(), KEYWORD, yaml);
}

/** The YAML in a file that may be a picture; null where it is none, or carries no loop. */
export function readLoopPng(bytes: Uint8Array): { isPicture: boolean; yaml: string | null } {
  return { isPicture: isPng(bytes), yaml: readPngText(bytes, KEYWORD) };
}
