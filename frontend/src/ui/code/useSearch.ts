import { type RefObject, useMemo, useState } from "react";
import type { CodeModel, CodeState } from "./CodeModel";
import { moved } from "./change";
import { type Hit, hitsOf, nextHit, patternOf, type Query } from "./search";

export type Search = ReturnType<typeof useSearch>;
export type Asking = "find" | "line";

const NOTHING: Query = { text: "", isCase: false, isWord: false, isPattern: false };
const NONE: readonly Hit[] = [];

/** What is searched for in a text, and replaced. */
export function useSearch(
  model: CodeModel,
  state: CodeState,
  area: RefObject<HTMLTextAreaElement | null>,
) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const [query, setQuery] = useState(NOTHING);
  const [replacement, setReplacement] = useState("");
  /** So that a field that is open already is gone to again. */
  const [asked, setAsked] = useState(0);
  const { text, selected } = state;
  const isSearching = asking === "find";
  const hits = useMemo(
    () => (isSearching ? hitsOf(text, query) : NONE),
    [isSearching, text, query],
  );
  const isRead = query.text === "" || patternOf(query) !== null;

  const open = (what: Asking) => {
    const [from, to] = model.state.selected;
    const chosen = model.state.text.slice(from, to);
    if (what === "find" && chosen !== "" && !chosen.includes("\n"))
      setQuery((old) => ({ ...old, text: chosen }));
    setAsking(what);
    setAsked((count) => count + 1);
  };
  const close = () => {
    setAsking(null);
    area.current?.focus({ preventScroll: true });
  };
  const go = (step: 1 | -1) => {
    const hit = nextHit(hitsOf(model.state.text, query), model.state.selected, step);
    if (hit) model.select(hit.from, hit.to);
  };
  /** The one that is selected, and goes on to the next; where none is, goes there. */
  const replace = () => {
    const [from, to] = selected;
    const hit = hits.find((one) => one.from === from && one.to === to);
    if (hit) {
      const insert = hit.insert(replacement);
      model.edit({ from, to, insert, select: [from + insert.length, from + insert.length] });
    }
    go(1);
  };
  const replaceAll = () => {
    const [first, last] = [hits[0], hits.at(-1)];
    if (!first || !last) return;
    let at = first.from;
    let insert = "";
    for (const hit of hits) {
      insert += text.slice(at, hit.from) + hit.insert(replacement);
      at = hit.to;
    }
    const change = { from: first.from, to: last.to, insert };
    const end = moved(last.to, change);
    model.edit({ ...change, select: [end, end] });
  };
  const onKey = (name: string): boolean => {
    if (name === "Mod-f") open("find");
    else if (name === "Mod-Alt-g") open("line");
    else if (/^(?:Mod-(?:Shift-)?g|(?:Shift-)?F3)$/.test(name)) {
      if (query.text === "") open("find");
      else go(name.includes("Shift") ? -1 : 1);
    } else if (name === "Mod-d") nextSame(model);
    else if (name === "Escape" && asking) close();
    else return false;
    return true;
  };
  const count = hits.length;
  const now = hits.findIndex((one) => one.from === selected[0] && one.to === selected[1]) + 1;
  return {
    ...{
      model,
      asking,
      asked,
      query,
      setQuery,
      replacement,
      setReplacement,
      hits,
      count,
      now,
      isRead,
    },
    ...{ isOpen: asking !== null, close, go, replace, replaceAll, onKey },
  };
}

/** The next place of the word that is selected, or that the cursor is in. */
function nextSame(model: CodeModel): void {
  const { text, selected } = model.state;
  const [from, to] = selected;
  if (from === to) {
    const before = /[\p{L}\p{N}_]*$/u.exec(text.slice(0, from))?.[0].length ?? 0;
    const after = /^[\p{L}\p{N}_]*/u.exec(text.slice(from))?.[0].length ?? 0;
    model.select(from - before, from + after);
    return;
  }
  const same = { ...NOTHING, text: text.slice(from, to).replaceAll("\\", "\\\\"), isCase: true };
  const hit = nextHit(hitsOf(text, same), selected, 1);
  if (hit) model.select(hit.from, hit.to);
}
