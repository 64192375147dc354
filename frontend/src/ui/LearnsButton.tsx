import { SquareFunction } from "lucide-react";
import { useExplaining } from "@/session/explaining";
import { Button } from "./Button";

/** Opens what a node computes, in formulas with its own settings. */
export function LearnsButton({ node }: { node: string }) {
  const explain = useExplaining((state) => state.explain);
  return (
    <Button
      size="small"
      look="quiet"
      className="-ml-2 mb-1 text-accent-text"
      icon={<SquareFunction size={13} />}
      onClick={() => explain({ node })}
    >
      Formulas and curves
    </Button>
  );
}
