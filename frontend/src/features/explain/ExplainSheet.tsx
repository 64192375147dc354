import { useExplaining } from "@/state/dialogs";
import { useDocument } from "@/state/document/context";
import { Sheet } from "@/ui/Sheet";
import { CodePage } from "./CodePage";
import { NodePage } from "./NodePage";

/** Help at the side: of a problem or an alert, or of what a node computes. */
export function ExplainSheet() {
  const { code, node, close } = useExplaining();
  const isThere = useDocument((state) => node !== null && node in state.document.nodes);
  if (code !== null) {
    return (
      <Sheet title="Why?" description={code} isOpen onClose={close}>
        <CodePage code={code} />
      </Sheet>
    );
  }
  if (node === null || !isThere) return null;
  return (
    <Sheet
      title={`What ${node} learns`}
      description="Formulas with its own settings, and its curves"
      isOpen
      onClose={close}
    >
      <NodePage node={node} />
    </Sheet>
  );
}
