import { useNodeColors } from "@/state/document/context";
import { nodeOf, verbOf } from "./lanes";

const CARRYING = new Set(["sync"]);
const SOFT = new Set(["learn"]);

/** Of a stage: its node's colour, lighter where it learns; what only carries weights is grey. */
export function useStageColor(): (stage: string) => string {
  const colors = useNodeColors();
  return (stage) => {
    const color = colors[nodeOf(stage)] ?? "var(--muted)";
    if (CARRYING.has(verbOf(stage))) return "var(--line-strong)";
    return SOFT.has(verbOf(stage)) ? `color-mix(in srgb, ${color} 55%, var(--surface))` : color;
  };
}

/** Of the text on a stage: what is drawn light has dark text. */
export function stageInk(stage: string): string {
  const verb = verbOf(stage);
  return SOFT.has(verb) || CARRYING.has(verb) ? "var(--text)" : "var(--surface)";
}

export function usePoolColor(): (nodes: readonly string[]) => string {
  const colors = useNodeColors();
  return ([first = ""]) => colors[first] ?? "var(--muted)";
}
