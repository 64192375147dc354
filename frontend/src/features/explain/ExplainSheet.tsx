import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Check, ExternalLink, X } from "lucide-react";
import { createElement, type ReactNode, useMemo } from "react";
import { fetchAlgorithmHelp, fetchCodeHelp } from "@/api/routes";
import type { AlgorithmHelp, Json, JsonObject, MathElement } from "@/api/types";
import { isObject } from "@/lib/paths";
import { explain, useExplaining } from "@/state/dialogs";
import { useCatalog, useDocument } from "@/state/document/context";
import { RichText } from "@/ui/RichText";
import { Sheet } from "@/ui/Sheet";
import { Unanswered } from "@/ui/States";

export function ExplainSheet() {
  const { code, node } = useExplaining();
  const isThere = useDocument((state) => node !== null && node in state.document.nodes);
  const ofNode = isThere ? node : null;
  if (code === null && ofNode === null) return null;
  return (
    <Sheet
      title={code === null ? `What ${ofNode} learns` : "Why?"}
      description={code ?? "Formulas with its own settings, and its curves"}
      onClose={() => explain({})}
    >
      {code === null ? <NodePage node={ofNode ?? ""} /> : <CodePage code={code} />}
    </Sheet>
  );
}

function NodePage({ node }: { node: string }) {
  const data = useDocument((state) => state.document.nodes[node]);
  const catalog = useCatalog();
  const inputs = catalog.kinds[data?.kind ?? ""]?.inputs;
  const found = useMemo(() => {
    const ports = inputs?.map((port) => port.name);
    return algorithmsOf(data as JsonObject | undefined, ports);
  }, [data, inputs]);
  const rollout = data?.rollout;
  if (found.length === 0) {
    return (
      <p className="text-muted text-sm">
        This node is not trained: it has no algorithm. Connect rewards, pairs, labels or
        demonstrations to it to see the formula of its loss here.
      </p>
    );
  }
  return (
    <div className="flex flex-col gap-8">
      {found.map(({ port, settings }, index) => (
        <AlgorithmPage
          key={`${port}.${index}`}
          port={port}
          settings={settings}
          rollout={isObject(rollout) ? rollout : null}
        />
      ))}
    </div>
  );
}

/** The algorithms of a node as they are written, whatever the form: one, by port, or several at a port. Pure. */
interface PortAlgorithm {
  port: string | null;
  settings: JsonObject;
}

export function algorithmsOf(
  node: JsonObject | undefined,
  ports: readonly string[] = [],
): PortAlgorithm[] {
  const section = node?.algorithm;
  if (!isObject(section)) return [];
  if (typeof section.name === "string") return [{ port: null, settings: section }];
  const inOrder = Object.entries(section).toSorted(
    ([a], [b]) => ports.indexOf(a) - ports.indexOf(b),
  );
  return inOrder.flatMap(([port, entry]) => listed(entry).map((settings) => ({ port, settings })));
}

function listed(entry: Json | undefined): JsonObject[] {
  const entries = Array.isArray(entry) ? entry : [entry];
  return entries.filter((one): one is JsonObject => isObject(one) && typeof one.name === "string");
}

interface AlgorithmPageProps {
  port: string | null;
  settings: JsonObject;
  /** How the node writes: a constant divisor is the length of its texts. */
  rollout: JsonObject | null;
}

function AlgorithmPage({ port, settings, rollout }: AlgorithmPageProps) {
  const help = useQuery({
    queryKey: ["explain", "algorithm", settings, rollout],
    queryFn: () => fetchAlgorithmHelp(settings, rollout),
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (!help.data) {
    const failed = "There is no formula for these settings";
    return <Unanswered query={help} loading="Loading the formulas" rows={6} failed={failed} />;
  }
  const { title, help: text, source, reads } = help.data;
  return (
    <article className="flex flex-col gap-3 text-sm">
      <header>
        <h3 className="font-semibold text-base">
          {title}
          {port ? <span className="font-normal text-muted"> from {port}</span> : null}
        </h3>
        <p className="text-muted">
          <RichText text={text} /> {source ? <SourceLink href={source} /> : null}
        </p>
      </header>
      <Formulas help={help.data} />
      <p className="text-faint text-xs">{reads}</p>
      <Curves help={help.data} />
    </article>
  );
}

function Formulas({ help }: { help: AlgorithmHelp }) {
  return (
    <ol className="flex flex-col gap-2">
      {help.formulas.map((formula) => (
        <li key={formula.name} className="rounded-2 border border-line px-3 py-2">
          <p className="flex items-baseline gap-2 font-medium text-xs">
            <span className="flex-1">{formula.name}</span>
            {formula.settings.length > 0 ? (
              <span className="truncate font-mono font-normal text-faint">
                {formula.settings.join(" · ")}
              </span>
            ) : null}
          </p>
          <div className="my-1.5 overflow-x-auto py-1">
            <Maths element={formula.maths} label={formula.text} />
          </div>
          {formula.note ? (
            <p className="text-muted text-xs">
              <RichText text={formula.note} />
            </p>
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function Curves({ help }: { help: AlgorithmHelp }) {
  return (
    <section>
      <h4 className="mt-2 mb-1 font-medium text-sm">Expected curves</h4>
      <dl className="divide-y divide-line border-line border-y">
        {help.curves.map((curve) => (
          <div key={curve.metric} className="py-2 text-xs">
            <dt className="flex items-baseline gap-2">
              <span className="flex-1 font-medium text-sm">{curve.title}</span>
              <span className="font-mono text-faint">{curve.metric}</span>
            </dt>
            <dd className="mt-0.5">
              <RichText text={curve.expect} />
            </dd>
            <dd className="mt-0.5 text-muted">
              <span className="font-medium">If not: </span>
              <RichText text={curve.otherwise} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** A formula as MathML, which the browser sets itself; the service sends elements, never markup. */
export function Maths({ element, label }: { element: MathElement; label: string }): ReactNode {
  const attributes = {
    display: "block",
    "aria-label": label,
    className: "text-[15px] [math-style:normal]",
  };
  return createElement("math", attributes, ...parts(element));
}

function parts({ text, children = [] }: MathElement): ReactNode[] {
  return children.length > 0
    ? children.map((child, index) => <Part key={index} element={child} />)
    : [text];
}

function Part({ element }: { element: MathElement }): ReactNode {
  const attributes = element.upright ? { mathvariant: "normal" } : null;
  return createElement(element.tag, attributes, ...parts(element));
}

export function CodePage({ code }: { code: string }) {
  const help = useQuery({
    queryKey: ["explain", code],
    queryFn: () => fetchCodeHelp(code),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!help.data) {
    const failed = "There is no help for this";
    return <Unanswered query={help} loading="Loading the help" rows={6} failed={failed} />;
  }
  const { title, means, matters, fix, example, source } = help.data;
  return (
    <article className="flex flex-col gap-4 text-sm">
      <div>
        <h3 className="font-semibold text-sm">{title}</h3>
        <p className="mt-1">
          <RichText text={means} />
        </p>
      </div>
      <Section title="Why it matters">
        <p>
          <RichText text={matters} />
        </p>
      </Section>
      <Section title="What to do">
        <ul className="flex list-disc flex-col gap-1 pl-4">
          {fix.map((line) => (
            <li key={line}>
              <RichText text={line} />
            </li>
          ))}
        </ul>
      </Section>
      {example ? (
        <Section title={example.language === "yaml" ? "For example" : "What a run shows"}>
          <Side isRight={false} text={example.wrong} />
          <Side isRight text={example.right} />
        </Section>
      ) : null}
      <footer className="flex items-center gap-3 text-muted text-xs">
        <code className="font-mono">coloop explain {code}</code>
        {source ? <SourceLink href={source} /> : null}
      </footer>
    </article>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-1.5">
      <h4 className="font-medium text-muted text-xs">{title}</h4>
      {children}
    </section>
  );
}

function Side({ isRight, text }: { isRight: boolean; text: string }) {
  return (
    <figure
      className={`overflow-hidden rounded-2 border border-line border-l-2 bg-sunken ${isRight ? "border-l-success-mark" : "border-l-error"}`}
    >
      <figcaption
        className={`flex items-center gap-1 px-3 pt-2 font-medium text-xs ${isRight ? "text-success" : "text-error"}`}
      >
        {isRight ? <Check size={13} aria-hidden="true" /> : <X size={13} aria-hidden="true" />}
        {isRight ? "Right" : "Wrong"}
      </figcaption>
      <pre className="max-h-64 overflow-auto px-3 py-2 font-mono text-xs leading-5">{text}</pre>
    </figure>
  );
}

function SourceLink({ href }: { href: string }) {
  return (
    <a
      href={href}
      target="_blank"
      rel="noreferrer"
      className="inline-flex items-center gap-1 text-accent-text hover:underline"
    >
      {href.includes("arxiv") ? "The paper" : "Read more"}
      <ExternalLink size={12} aria-hidden="true" />
    </a>
  );
}
