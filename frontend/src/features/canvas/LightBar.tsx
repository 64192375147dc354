import { ChevronDown, ChevronUp, Route, Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { formatPlural } from "@/lib/format";
import { reveal } from "@/state/canvas";
import { unlight, useAsked, useFound, useLineage, useLit } from "@/state/lit";
import { select } from "@/state/selection";
import { IconButton } from "@/ui/IconButton";

const BAR =
  "absolute top-2 left-1/2 z-5 flex w-max max-w-[calc(100%-108px)] -translate-x-1/2 items-center gap-1.5 rounded-2 border border-line bg-raised px-2 py-1 text-sm shadow-2";

/** Over the graph: the search for a node, or what the row is that is followed. Escape closes it. */
export function LightBar() {
  const asked = useAsked((state) => state.asked);
  useEffect(() => unlight, []);
  if (asked === null) return null;
  return asked.kind === "find" ? (
    <FindBar text={asked.text} />
  ) : (
    <RowBar key={asked.node} node={asked.node} />
  );
}

function closeOnEscape(event: React.KeyboardEvent): void {
  if (event.key !== "Escape") return;
  event.stopPropagation();
  unlight();
}

function FindBar({ text }: { text: string }) {
  const found = useFound(text);
  const input = useRef<HTMLInputElement>(null);
  const [at, setAt] = useState(-1);
  useEffect(() => {
    const nodes = new Set(found.map(({ id }) => id));
    useLit.setState({ lit: text.trim() === "" ? null : { nodes, edges: null } });
    return () => useLit.setState({ lit: null });
  }, [found, text]);
  useEffect(() => input.current?.focus(), []);
  const now = at >= 0 ? found[at % found.length] : undefined;
  const go = (by: number) => {
    if (found.length === 0) return;
    const next = at < 0 ? (by > 0 ? 0 : found.length - 1) : (at + by + found.length) % found.length;
    setAt(next);
    const node = found[next]?.id;
    if (node === undefined) return;
    select({ nodes: [node] });
    reveal(node);
  };
  return (
    <search className={BAR} aria-label="Find a node" onKeyDown={closeOnEscape}>
      <Search size={14} aria-hidden="true" className="shrink-0 text-muted" />
      <input
        ref={input}
        value={text}
        aria-label="Find by name, kind or field"
        placeholder="Find by name, kind or field"
        className="h-7 w-56 min-w-20 bg-transparent outline-none placeholder:text-faint"
        onChange={(event) => {
          setAt(-1);
          useAsked.setState({ asked: { kind: "find", text: event.target.value } });
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          else if (event.key === "ArrowDown") go(1);
          else if (event.key === "ArrowUp") go(-1);
          else return;
          event.preventDefault();
        }}
      />
      <span role="status" className="tabular max-w-72 truncate text-muted text-xs">
        {text.trim() === ""
          ? ""
          : now
            ? `${(at % found.length) + 1} of ${found.length} · ${now.id} · ${now.where}`
            : found.length === 0
              ? "none"
              : formatPlural(found.length, "node")}
      </span>
      <IconButton
        size="small"
        label="Previous"
        disabled={found.length === 0}
        onClick={() => go(-1)}
        icon={<ChevronUp size={14} />}
      />
      <IconButton
        size="small"
        label="Next"
        disabled={found.length === 0}
        onClick={() => go(1)}
        icon={<ChevronDown size={14} />}
      />
      <IconButton
        size="small"
        label="Close"
        keys="escape"
        onClick={unlight}
        icon={<X size={14} />}
      />
    </search>
  );
}

function RowBar({ node }: { node: string }) {
  const lineage = useLineage(node);
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    useLit.setState({ lit: lineage });
    return () => useLit.setState({ lit: null });
  }, [lineage]);
  useEffect(() => bar.current?.focus(), []);
  const { sources, losses } = lineage;
  const ends = losses.length === 0 ? "nothing learns from it" : `learned from at ${list(losses)}`;
  const begins = sources.includes(node) ? "" : `from ${list(sources)}, `;
  return (
    <section
      ref={bar}
      tabIndex={-1}
      aria-label="The way of a row"
      className={BAR}
      onKeyDown={closeOnEscape}
    >
      <Route size={14} aria-hidden="true" className="shrink-0 text-muted" />
      <b className="shrink-0 font-semibold">A row of {node}</b>
      <span role="status" className="min-w-0 truncate text-muted" title={`${begins}${ends}`}>
        {begins}
        {ends}
      </span>
      <IconButton
        size="small"
        label="Close"
        keys="escape"
        onClick={unlight}
        icon={<X size={14} />}
      />
    </section>
  );
}

function list(names: readonly string[]): string {
  return names.join(", ");
}
