import { useState } from "react";
import type { TellingValue } from "@/document/telling";
import { CardText } from "./CardText";

interface CardValueProps {
  node: string;
  value: TellingValue;
  /** Whether the Tab key leads to it. */
  isReachable: boolean;
}

/** One value of a card, on a line of its own. */
export function CardValue({ node, value, isReachable }: CardValueProps) {
  const [isEditing, setEditing] = useState(false);
  return (
    <div className="card-value" data-editing={isEditing || undefined}>
      <span className="card-value-label">{value.label}</span>
      <CardText node={node} value={value} isReachable={isReachable} onEditing={setEditing} />
    </div>
  );
}
