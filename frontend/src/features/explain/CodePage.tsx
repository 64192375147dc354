import { useQuery } from "@tanstack/react-query";
import { Check, ExternalLink, X } from "lucide-react";
import type { ReactNode } from "react";
import { fetchCodeHelp } from "@/api/routes";
import { RichText } from "@/ui/RichText";
import { Failed, Loading } from "@/ui/States";

/** What a code means, why it matters, what to do, and an example that is checked. */
export function CodePage({ code }: { code: string }) {
  const help = useQuery({
    queryKey: ["explain", code],
    queryFn: () => fetchCodeHelp(code),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (help.isPending) return <Loading label="Loading the help" rows={6} />;
  if (help.isError) {
    return (
      <Failed
        title="There is no help for this"
        error={help.error}
        onRetry={() => void help.refetch()}
      />
    );
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

/** A paper or a manual, outside of the page. */
export function SourceLink({ href }: { href: string }) {
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
