import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { previewRows } from "@/api/routes";
import { datasetsOf } from "@/document/datasets";
import { useCatalog, useDocument } from "./document/context";

export interface Word {
  label: string;
  detail: string;
}

const ALWAYS: readonly Word[] = [
  { label: "prompts", detail: "the prompts, one per row" },
  { label: "completions", detail: "the completions, one per row" },
  { label: "columns", detail: "every other column, by name" },
];

/** Names that code of a source may use: its arguments, and the columns of the rows that reach it. */
export function useWords(node: string): readonly Word[] {
  const catalog = useCatalog();
  const document = useDocument((state) => state.document);
  const text = useDocument((state) => state.text);
  const datasets = useMemo(() => datasetsOf(catalog, document, node), [catalog, document, node]);
  const source = JSON.stringify(datasets.map((name) => [name, document.nodes[name]]));
  const { data } = useQuery({
    queryKey: ["columns", source],
    enabled: datasets.length > 0 && text !== "",
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        datasets.map((name) =>
          previewRows({ what: "rows", yaml: text, node: name, offset: 0, count: 1 }, signal),
        ),
      );
      return pages.flatMap((page, place) =>
        page.columns.map(({ name, type }) => ({
          label: name,
          detail: `${type}, of ${datasets[place] ?? ""}`,
        })),
      );
    },
  });
  return useMemo(() => {
    const all = [...ALWAYS, ...(data ?? [])];
    const isFirst = ({ label }: Word, at: number) =>
      all.findIndex((word) => word.label === label) === at;
    return all.filter(isFirst);
  }, [data]);
}
