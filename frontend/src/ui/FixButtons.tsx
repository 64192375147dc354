import { WandSparkles } from "lucide-react";
import type { Diagnostic } from "@/api/types";
import { applyChanges } from "@/document/commands/applyChanges";
import { useCatalog, useDocument } from "@/document/context";
import { Button } from "./Button";
import { RichText } from "./RichText";

/** The repairs that one click applies; each is one undo step. */
export function FixButtons({ problem }: { problem: Diagnostic }) {
  const catalog = useCatalog();
  const dispatch = useDocument((state) => state.dispatch);
  const isReadonly = useDocument((state) => state.isReadonly);
  if (!problem.fixes?.length || isReadonly) return null;
  return (
    <span className="mt-1 flex flex-wrap gap-1">
      {problem.fixes.map((fix) => (
        <Button
          key={fix.title}
          size="small"
          className="h-6"
          icon={<WandSparkles size={12} />}
          onClick={(event) => {
            event.stopPropagation();
            dispatch(applyChanges, { catalog, changes: fix.changes }, { label: fix.title });
          }}
        >
          <RichText text={fix.title} />
        </Button>
      ))}
    </span>
  );
}
