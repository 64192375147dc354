/** Rules of the front end that a compiler does not know. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

const SOURCE = join(process.cwd(), "src");
const OF_LIBRARIES = /^--radix-/;
const VAGUE = /^(utils?|helpers?|common|misc|manager)\.tsx?$/i;

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

const all = files(SOURCE).map((path) => ({
  path: relative(SOURCE, path),
  text: readFileSync(path, "utf-8"),
}));
const code = all.filter(({ path }) => /\.tsx?$/.test(path) && !path.endsWith(".gen.ts"));

describe("house rules", () => {
  it("no file has a name that says nothing", () => {
    expect(all.filter(({ path }) => VAGUE.test(basename(path)))).toEqual([]);
  });

  it("no file only passes on what others export", () => {
    const barrels = code.filter(({ text }) => /^export \* from/m.test(text));
    expect(barrels.map(({ path }) => path)).toEqual([]);
  });

  it("colours stand in tokens.css only", () => {
    const colour = /#[0-9a-f]{6}\b|rgba?\(|hsl\(/i;
    const found = all.filter(
      ({ path, text }) =>
        path !== "styles/tokens.css" && colour.test(text.replaceAll(/"#fff"/g, "")),
    );
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it("every colour and measure that is asked for by name is there", () => {
    const text = all.map((file) => file.text).join("\n");
    const tokens = all.find(({ path }) => path === "styles/tokens.css")?.text ?? "";
    const own = new Set([...text.matchAll(/(--[\w-]+)"?\]?[:,]/g)].map(([, name]) => name));
    const missing = [...text.matchAll(/var\((--[\w-]+)(\$\{)?/g)].filter(([, name = "", more]) =>
      more ? !tokens.includes(`\n  ${name}`) : !own.has(name) && !OF_LIBRARIES.test(name),
    );
    expect(missing.map(([found]) => found)).toEqual([]);
  });

  it("no list is the browser's own, which cuts what is chosen", () => {
    const lists = code.filter(({ text }) => /<select\b/.test(text)).map(({ path }) => path);
    expect(lists).toEqual([]);
  });

  it("YAML is never printed here", () => {
    const found = code.filter(({ text }) => /from "(yaml|js-yaml)"/.test(text));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it("the service is asked through the client only, and no answer is taken for another shape", () => {
    const asking = code.filter(({ text }) => /\bfetch\(|XMLHttpRequest/.test(text));
    expect(asking.map(({ path }) => path)).toEqual(["api/client.ts"]);

    const routes = code.find(({ path }) => path === "api/routes.ts")?.text ?? "";
    expect(routes).not.toMatch(/ as (?!const)|read<|readPage</);
  });

  it("React Flow stays behind the canvas", () => {
    const allowed = /^(features\/canvas\/|features\/palette\/useAddInMiddle\.ts|app\/)/;
    const found = code.filter(
      ({ path, text }) => text.includes('"@xyflow/react"') && !allowed.test(path),
    );
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it("an animation without end changes opacity only, or is named here", () => {
    const sheets = all.filter(({ path }) => path.endsWith(".css")).map(({ text }) => text);
    const css = sheets.join("\n");
    const endless = [...css.matchAll(/animation: (\w+)[^;]*infinite/g)].map(([, name]) => name);

    const repainting = endless.filter((name) => {
      const start = css.indexOf(`@keyframes ${name} `);
      const frames = css.slice(start, css.indexOf("\n}", start));
      return [...frames.matchAll(/^\s+([\w-]+):/gm)].some(([, property]) => property !== "opacity");
    });

    // The bottleneck's edges, and what stands for a panel while it loads.
    expect(repainting.toSorted()).toEqual(["march", "sweep"]);
    expect(endless).toContain("glow");
    expect(css).toMatch(/\[data-bottleneck\] \{\s+animation: march/);
  });
});
