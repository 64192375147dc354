import { useMemo, useState } from "react";
import { useDocument, useOpenLoop } from "@/document/context";
import { type TellingValue, tellingValues } from "@/document/telling";
import { CardText } from "./CardText";

interface CardValuesProps {
  node: string;
  isReachable: boolean;
}

/** What its kind calls telling about a node, to be read and changed in place. */
export function CardValues({ node, isReachable }: CardValuesProps) {
  const { catalog, store } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is what is read of the document
  const values = useMemo(
    () => tellingValues(catalog, store.getState().document, node),
    [catalog, store, node, data],
  );
  if (values.length === 0) return null;
  return (
    <div className="card-values">
      {values.map((value) => (
        <CardValue key={value.label} node={node} value={value} isReachable={isReachable} />
      ))}
    </div>
  );
}

interface CardValueProps {
  node: string;
  value: TellingValue;
  /** Whether the Tab key leads to it. */
  isReachable: boolean;
}

/** One value of a card, on a line of its own. */
function CardValue({ node, value, isReachable }: CardValueProps) {
  const [isEditing, setEditing] = useState(false);
  return (
    <div className="card-value" data-editing={isEditing || undefined}>
      <span className="card-value-label">{value.label}</span>
      <CardText node={node} value={value} isReachable={isReachable} onEditing={setEditing} />
    </div>
  );
}
