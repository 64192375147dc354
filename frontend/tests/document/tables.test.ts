/** Columns of files and of pasted texts, and what they are taken for. */
import { describe, expect, it } from "vitest";
import { columnsAt, rememberColumns } from "@/document/columnsAt";
import { DATA_FILE } from "@/document/dataFiles";
import { columnsOf, guessColumns, pastedRows } from "@/document/tables";
import { catalog, smallLoop } from "../fixtures/loops";

describe("what columns are", () => {
  it.each<[string[], Record<string, string>]>([
    [["question", "answer"], { prompt: "question", target: "answer" }],
    [["problem", "solution"], { prompt: "problem", answer: "solution", target: "solution" }],
    [["prompt", "chosen", "rejected"], {}],
    [["Instruction", "output"], { prompt: "Instruction", target: "output" }],
    [["prompt", "winner", "loser"], { chosen: "winner", rejected: "loser" }],
    [["a", "b"], {}],
  ])("%j: %j", (columns, mapping) => {
    expect(guessColumns(columns)).toEqual(mapping);
  });
});

describe("columns of a file", () => {
  it.each<[string, string, string[] | null]>([
    ["a.jsonl", '\n{"question": "1", "answer": 2}\n{"x": 1}', ["question", "answer"]],
    ["a.json", '{"version": 1, "data": [{"q": 1}]}', ["q"]],
    ["a.csv", 'prompt,"the, answer"\r\n1,2', ["prompt", "the, answer"]],
    ["a.tsv", "prompt\tanswer\n1\t2", ["prompt", "answer"]],
    ["a.jsonl", "no json", null],
    ["a.parquet", "PAR1", null],
  ])("%s", (name, text, columns) => {
    expect(columnsOf(name, text)).toEqual(columns);
  });

  it("are of files that datasets read", () => {
    const names = ["a.jsonl", "B.CSV", "a.json.gz", "a.parquet", "loop.yaml", "a.png", "a.gz"];

    expect(names.filter((name) => DATA_FILE.test(name))).toEqual(names.slice(0, 4));
  });
});

describe("rows that are pasted", () => {
  it("are lines of JSON, a list, or a table with names above", () => {
    const rows = [{ prompt: "1+1", answer: "2" }];

    expect(pastedRows('{"prompt": "1+1", "answer": "2"}\n')).toEqual(rows);
    expect(pastedRows('[{"prompt": "1+1", "answer": "2"}]')).toEqual(rows);
    expect(pastedRows("prompt\tanswer\n1+1\t2")).toEqual(rows);
  });

  it.each([
    ["actor: {kind: actor}"],
    ['{"nodes": {"actor": {"kind": "actor"}}}'],
    ['{"kind": "actor"}'],
    ["words\nand more words"],
    [""],
  ])("are not: %s", (text) => {
    expect(pastedRows(text)).toBeNull();
  });
});

it("a template may mention columns of the datasets above it, and the text that is written", () => {
  const loop = smallLoop();
  loop.nodes.problems = {
    kind: "dataset",
    source: { type: "file", path: "uploads/a.jsonl" },
    columns: { prompt: "question" },
  };
  rememberColumns("uploads/a.jsonl", ["question", "hint"]);

  expect(columnsAt(catalog, loop, "exact")).toEqual(["prompt", "hint", "completion"]);
  expect(columnsAt(catalog, loop, "problems")).toEqual([]);
});
