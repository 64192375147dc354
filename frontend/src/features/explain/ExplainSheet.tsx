import { useDocument } from "@/document/context";
import { useExplaining } from "@/session/explaining";
import { Sheet } from "@/ui/Sheet";
import { CodePage } from "./CodePage";
import { NodePage } from "./NodePage";

/** Help at the side: of a problem or an alert, or of what a node computes. */
export function ExplainSheet() {
  const shown = useExplaining((state) => state.shown);
  const show = useExplaining((state) => state.show);
  const isThere = useDocument(
    (state) => shown?.what !== "node" || shown.node in state.document.nodes,
  );
  if (!shown || !isThere) return null;
  const isCode = shown.what === "code";
  return (
    <Sheet
      title={isCode ? "Why?" : `What ${shown.node} learns`}
      description={
        isCode ? shown.code : "Formulas with its own settings, and how its curves should look"
      }
      isOpen
      onClose={() => show(null)}
    >
      {isCode ? <CodePage code={shown.code} /> : <NodePage node={shown.node} />}
    </Sheet>
  );
}
