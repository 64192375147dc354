import { useQuery } from "@tanstack/react-query";
import { FlaskConical, Maximize2, ShieldAlert, ShieldCheck } from "lucide-react";
import { type ComponentProps, useMemo, useState } from "react";
import { Link } from "wouter";
import { fetchSandbox } from "@/api/routes";
import { problemsAt, textMarks } from "@/document/problems";
import { payees, payingEdges } from "@/document/rewards";
import { joinPath } from "@/lib/paths";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { useWords } from "@/state/useWords";
import { Button } from "@/ui/Button";
import { CodeEditor } from "@/ui/CodeEditor";
import { Dialog } from "@/ui/Dialog";
import { IconButton } from "@/ui/IconButton";
import { Tooltip } from "@/ui/Tooltip";
import { useForm, type WidgetProps } from "./FormContext";

export function CodeWidget({ label, field, path, value, isDisabled, onChange }: WidgetProps) {
  const [isLarge, setLarge] = useState(false);
  const text = typeof value === "string" ? value : "";
  const isText = field.title.toLowerCase().includes("text");
  const language = field.unit === "jinja" ? "jinja" : isText ? "plain" : "python";
  const { scope, base, diagnostics } = useForm();
  const place = joinPath([...base, ...path]);
  const marks = useMemo(
    () => textMarks(problemsAt(diagnostics, place, true)),
    [diagnostics, place],
  );
  const node = String(scope[1] ?? "");
  const shared = (minHeight: string) => ({
    label,
    value: text,
    minHeight,
    marks,
    isReadonly: isDisabled,
    onChange: (typed: string) => onChange(typed === "" ? undefined : typed),
  });
  const editor = (minHeight: string) =>
    language === "python" ? (
      <PythonEditor node={node} {...shared(minHeight)} />
    ) : (
      <CodeEditor language={language} {...shared(minHeight)} />
    );
  return (
    <div className="overflow-hidden rounded-1 border border-line">
      {isLarge ? (
        <div className="p-3 text-muted text-xs">Open in the large editor.</div>
      ) : (
        editor("96px")
      )}
      <div className="flex items-center justify-end border-line border-t bg-sunken px-1">
        {language === "python" ? <SandboxNote /> : null}
        {text === "" && field.starter !== null && !isDisabled ? (
          <Button size="small" look="quiet" onClick={() => onChange(field.starter ?? undefined)}>
            Start with an example
          </Button>
        ) : null}
        <span className="flex-1" />
        {language === "python" ? <TryNote node={node} /> : null}
        <IconButton
          label="Open in a large editor"
          size="small"
          onClick={() => setLarge(true)}
          icon={<Maximize2 size={12} />}
        />
      </div>
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

type PythonEditorProps = Omit<ComponentProps<typeof CodeEditor>, "language" | "words"> & {
  node: string;
};

function PythonEditor({ node, ...rest }: PythonEditorProps) {
  const words = useWords(node);
  return <CodeEditor language="python" words={words} {...rest} />;
}

function TryNote({ node }: { node: string }) {
  const catalog = useCatalog();
  const { loopId } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const pays = payees(catalog, document).some(({ name }) =>
    payingEdges(document, name).some((edge) => edge.node === node),
  );
  if (loopId === null || !pays) return null;
  return (
    <Link
      href={`/loops/${loopId}/rewards?source=${node}`}
      className="flex items-center gap-1 rounded-1 px-1 py-0.5 text-accent-text text-xs hover:underline"
    >
      <FlaskConical size={12} aria-hidden="true" /> Try it on rows
    </Link>
  );
}

const NAMES = { namespaces: "Sandboxed", calls: "Sandboxed, calls only", none: "No sandbox" };

function SandboxNote() {
  const { data } = useQuery({ queryKey: ["sandbox"], queryFn: fetchSandbox, staleTime: Infinity });
  if (data === undefined) return null;
  const isOpen = data.isolation === "none";
  const Mark = isOpen ? ShieldAlert : ShieldCheck;
  const text = (
    <>
      <p>This code runs in a separate process: {data.holds}.</p>
      <p className="mt-1 text-muted">Note: {data.remains}.</p>
      {data.reason ? (
        <p className="mt-1 text-muted">No stronger sandbox on this machine: {data.reason}</p>
      ) : null}
    </>
  );
  return (
    <Tooltip text={text}>
      <button
        type="button"
        className={`flex items-center gap-1 rounded-1 px-1 py-0.5 text-2xs ${
          isOpen ? "text-warning" : "text-muted"
        }`}
      >
        <Mark size={12} aria-hidden />
        {NAMES[data.isolation]}
      </button>
    </Tooltip>
  );
}
