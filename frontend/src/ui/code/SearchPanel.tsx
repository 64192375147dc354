import {
  ArrowDown,
  ArrowUp,
  CaseSensitive,
  type LucideIcon,
  Regex,
  WholeWord,
  X,
} from "lucide-react";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../Button";
import { CONTROL } from "../control";
import { IconButton } from "../IconButton";
import { placeOf } from "./marks";
import type { Query } from "./search";
import type { Search } from "./useSearch";

interface SearchPanelProps {
  search: Search;
  isReadonly: boolean;
}

/** Below the text: what is searched for, what takes its place; or the number of a line. */
export function SearchPanel({ search, isReadonly }: SearchPanelProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    search.close();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape in any of the fields
    <div className="code-search" onKeyDown={onKeyDown}>
      {search.asking === "line" ? (
        <LineField search={search} />
      ) : (
        <>
          <Find search={search} />
          {isReadonly ? null : <Replace search={search} />}
        </>
      )}
      <IconButton label="Close the search" size="small" className="ml-auto" onClick={search.close}>
        <X size={12} aria-hidden="true" />
      </IconButton>
    </div>
  );
}

/** Gone to when it is asked for. */
function useAsked(asked: number) {
  const field = useRef<HTMLInputElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each time that it is asked for
  useEffect(() => field.current?.select(), [asked]);
  return field;
}

function Find({ search }: { search: Search }) {
  const { query, setQuery, isRead, count, now } = search;
  const field = useAsked(search.asked);
  const told = count === 0 ? "none" : `${now > 0 ? `${now} of ` : ""}${count}`;
  return (
    <>
      <input
        ref={field}
        aria-label="Find"
        placeholder="Find"
        className={`${CONTROL} w-36`}
        aria-invalid={!isRead}
        value={query.text}
        onChange={({ target }) => setQuery({ ...query, text: target.value })}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          search.go(event.shiftKey ? -1 : 1);
        }}
      />
      <span role="status" className="min-w-14 text-muted text-xs">
        {query.text === "" ? "" : isRead ? told : "cannot be read"}
      </span>
      <IconButton label="The one before" size="small" onClick={() => search.go(-1)}>
        <ArrowUp size={12} aria-hidden="true" />
      </IconButton>
      <IconButton label="The next one" size="small" onClick={() => search.go(1)}>
        <ArrowDown size={12} aria-hidden="true" />
      </IconButton>
      <Way search={search} name="isCase" label="Match case" Icon={CaseSensitive} />
      <Way search={search} name="isWord" label="Whole words" Icon={WholeWord} />
      <Way search={search} name="isPattern" label="Regular expression" Icon={Regex} />
    </>
  );
}

interface WayProps {
  search: Search;
  name: Exclude<keyof Query, "text">;
  label: string;
  Icon: LucideIcon;
}

function Way({ search: { query, setQuery }, name, label, Icon }: WayProps) {
  return (
    <IconButton
      label={label}
      size="small"
      isActive={query[name]}
      onClick={() => setQuery({ ...query, [name]: !query[name] })}
    >
      <Icon size={14} aria-hidden="true" />
    </IconButton>
  );
}

function Replace({ search }: { search: Search }) {
  return (
    <>
      <input
        aria-label="Replace"
        placeholder="Replace"
        className={`${CONTROL} w-36`}
        value={search.replacement}
        onChange={({ target }) => search.setReplacement(target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          search.replace();
        }}
      />
      <Button size="small" onClick={search.replace}>
        Replace
      </Button>
      <Button size="small" onClick={search.replaceAll}>
        All
      </Button>
    </>
  );
}

function LineField({ search }: { search: Search }) {
  const { model } = search;
  const [typed, setTyped] = useState("");
  const field = useAsked(search.asked);
  const go = () => {
    const found = /^\s*(\d+)(?:\s*[:,]\s*(\d+))?\s*$/.exec(typed);
    if (!found) return;
    const { lines, shown } = model.state;
    const texts = lines.map(({ text }) => text);
    const column = found[2] === undefined ? null : Number(found[2]);
    model.select(placeOf(texts, shown.starts, Number(found[1]), column));
    search.close();
  };
  return (
    <>
      <input
        ref={field}
        aria-label="Go to line"
        placeholder="Line, or line:column"
        inputMode="numeric"
        className={`${CONTROL} w-40`}
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        onKeyDown={(event) => event.key === "Enter" && go()}
      />
      <Button size="small" onClick={go}>
        Go
      </Button>
    </>
  );
}
