import { Maximize2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import type { Json } from "@/api/types";
import type { Field } from "@/catalog/schema";
import { Dialog } from "@/ui/Dialog";
import { IconButton } from "@/ui/IconButton";
import { Loading } from "@/ui/States";

const CodeEditor = lazy(() =>
  import("@/ui/code/CodeEditor").then((module) => ({ default: module.CodeEditor })),
);

interface CodeWidgetProps {
  label: string;
  field: Field;
  value: Json | undefined;
  isDisabled: boolean;
  onChange: (value: string | undefined) => void;
}

/** Code with colours; a larger editor opens on demand. The editor is loaded when one is first shown. */
export function CodeWidget({ label, field, value, isDisabled, onChange }: CodeWidgetProps) {
  const [isLarge, setLarge] = useState(false);
  const text = typeof value === "string" ? value : "";
  const language =
    field.unit === "jinja" || field.title.toLowerCase().includes("text") ? "plain" : "python";
  const editor = (minHeight: string) => (
    <Suspense fallback={<Loading label="Loading the editor" />}>
      <CodeEditor
        label={label}
        language={language}
        value={text}
        minHeight={minHeight}
        isReadonly={isDisabled}
        onChange={(typed) => onChange(typed === "" ? undefined : typed)}
      />
    </Suspense>
  );
  return (
    <div className="relative overflow-hidden rounded-1 border border-line">
      {isLarge ? (
        <div className="p-3 text-muted text-xs">Open in the large editor.</div>
      ) : (
        editor("96px")
      )}
      <IconButton
        label="Open in a large editor"
        size="small"
        className="absolute top-1 right-1 bg-surface"
        onClick={() => setLarge(true)}
      >
        <Maximize2 size={12} />
      </IconButton>
      <Dialog
        title={label}
        description={field.help}
        isOpen={isLarge}
        onClose={() => setLarge(false)}
        width="max-w-4xl"
      >
        <div className="overflow-hidden rounded-2 border border-line">{editor("56vh")}</div>
      </Dialog>
    </div>
  );
}
