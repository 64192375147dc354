import { Search, Workflow } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { hitAddress, useLoopSearch, useServerCatalog } from "@/state/queries";
import { KindIcon } from "@/ui/KindIcon";

export function LoopSearch() {
  const [search, setSearch] = useState("");
  const catalog = useServerCatalog();
  const found = useLoopSearch(search);
  const kinds = catalog.data?.kinds;
  const isAsked = search.trim().length > 1;
  return (
    <search className="border-line border-b">
      <label className="flex h-10 items-center gap-2 px-4 text-muted text-sm">
        <Search size={14} aria-hidden="true" />
        <input
          aria-label="Find a loop or a node"
          placeholder="Find a loop or a node by name, kind or model"
          className="h-full min-w-0 flex-1 bg-transparent text-text outline-none placeholder:text-muted"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
      </label>
      {isAsked && found.data ? (
        <ul aria-label="Found" className="border-line border-t bg-sunken py-1">
          {found.data.length === 0 ? (
            <li className="px-4 py-1 text-muted text-sm">No matches.</li>
          ) : null}
          {found.data.map(({ loop, loop_name: name, node, kind, model }) => (
            <li key={`${loop} ${node}`}>
              <Link
                href={hitAddress(loop, node)}
                className="flex h-8 items-center gap-2 px-4 text-sm hover:bg-hover"
              >
                {node === null ? (
                  <Workflow size={14} aria-hidden="true" />
                ) : (
                  <KindIcon name={kinds?.[kind ?? ""]?.icon} size={14} />
                )}
                <span className="font-medium">{node ?? name}</span>
                <span className="min-w-0 flex-1 truncate text-muted">
                  {node === null
                    ? "loop"
                    : [kinds?.[kind ?? ""]?.title ?? kind, model].filter(Boolean).join(" · ")}
                </span>
                <span className="max-w-2/5 truncate text-muted text-xs">
                  {node === null ? "" : name}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      ) : null}
    </search>
  );
}
