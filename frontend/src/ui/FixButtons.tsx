import { WandSparkles } from "lucide-react";
import type { Diagnostic } from "@/api/types";
import { reveal } from "@/state/canvas";
import { applyChanges } from "@/state/commands/applyChanges";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { Button } from "./Button";
import { RichText } from "./RichText";

export function FixButtons({ problem }: { problem: Diagnostic }) {
  const { catalog, store } = useOpenLoop();
  const isReadonly = useDocument((state) => state.isReadonly);
  if (!problem.fixes?.length || isReadonly) return null;
  return (
    <span className="mt-1 flex flex-wrap gap-1">
      {problem.fixes.map((fix, index) => (
        <Button
          key={index}
          size="small"
          className="h-6"
          icon={<WandSparkles size={12} />}
          onClick={(event) => {
            event.stopPropagation();
            const before = store.getState().document.nodes;
            const change = { catalog, changes: fix.changes };
            store.dispatch(applyChanges, change, { label: fix.title });
            const added = Object.keys(store.getState().document.nodes).find(
              (id) => !(id in before),
            );
            if (added) reveal(added);
          }}
        >
          <RichText text={fix.title} />
        </Button>
      ))}
    </span>
  );
}
