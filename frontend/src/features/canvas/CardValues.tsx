import { useMemo } from "react";
import { useDocument, useOpenLoop } from "@/document/context";
import { tellingValues } from "@/document/telling";
import { CardValue } from "./CardValue";

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
