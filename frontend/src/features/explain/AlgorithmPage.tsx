import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { createElement, type ReactNode } from "react";
import { fetchAlgorithmHelp } from "@/api/routes";
import type { AlgorithmHelp, JsonObject, MathElement } from "@/api/types";
import { RichText } from "@/ui/RichText";
import { Failed, Loading } from "@/ui/States";
import { SourceLink } from "./CodePage";

interface AlgorithmPageProps {
  port: string | null;
  settings: JsonObject;
  /** How the node writes: a constant divisor is the length of its texts. */
  rollout: JsonObject | null;
}

/** What an algorithm computes with these settings, formula by formula, and how its curves should look. */
export function AlgorithmPage({ port, settings, rollout }: AlgorithmPageProps) {
  const help = useQuery({
    queryKey: ["explain", "algorithm", settings, rollout],
    queryFn: () => fetchAlgorithmHelp(settings, rollout),
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (help.isPending) return <Loading label="Loading the formulas" rows={6} />;
  if (help.isError) {
    return (
      <Failed
        title="There is no formula for these settings"
        error={help.error}
        onRetry={() => void help.refetch()}
      />
    );
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
  const attributes = { display: "block", "aria-label": label, className: "maths" };
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
