import { useMemo } from "react";
import { useCatalog } from "@/document/context";
import { differenceText } from "@/document/differenceText";
import { documentDifferences } from "@/document/sync/merge";
import type { LoopDocument } from "@/document/types";

/** What is different in words, node by node. */
export function VersionWords({ before, after }: { before: LoopDocument; after: LoopDocument }) {
  const catalog = useCatalog();
  const groups = useMemo(() => {
    const found = new Map<string, string[]>();
    for (const difference of documentDifferences(before, after)) {
      const { where, what } = differenceText(catalog, difference);
      found.set(where, [...(found.get(where) ?? []), what]);
    }
    return [...found];
  }, [catalog, before, after]);
  if (groups.length === 0)
    return <p className="p-4 text-muted text-sm">No change that affects a run.</p>;
  return (
    <dl className="p-4 text-sm">
      {groups.map(([where, what]) => (
        <div key={where} className="mb-3">
          <dt className="font-semibold">{where}</dt>
          {what.map((words) => (
            <dd key={words} className="break-words pl-3 text-muted">
              {words}
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
