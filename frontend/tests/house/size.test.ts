/** The check of what a page loads, on a build made for it: it is `npm run size` that a change has to pass. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

const CHUNKS = [
  "src/app/EditorPage.tsx",
  "src/app/RunPage.tsx",
  "src/features/loops/DropZone.tsx",
  "src/features/inspector/Inspector.tsx",
  "src/features/hardware/HardwareBar.tsx",
  "src/app/Toasts.tsx",
  "src/app/CommandPalette.tsx",
  "src/features/palette/AddSearch.tsx",
  "src/ui/code/CodeEditor.tsx",
];
const folders: string[] = [];

/** Every chunk of 1 kB, but for these: what does not pack, so that its size is known. */
function built(kilobytes: Record<string, number>): string {
  const folder = mkdtempSync(join(tmpdir(), "coloop-size-"));
  folders.push(folder);
  mkdirSync(join(folder, ".vite"));
  mkdirSync(join(folder, "assets"));
  const manifest: Record<string, object> = {};
  for (const [at, chunk] of ["index.html", ...CHUNKS].entries()) {
    const file = `assets/${at}.js`;
    writeFileSync(join(folder, file), randomBytes((kilobytes[chunk] ?? 1) * 1000));
    manifest[chunk] = { file, isEntry: chunk === "index.html" };
  }
  writeFileSync(join(folder, ".vite/manifest.json"), JSON.stringify(manifest));
  return folder;
}

const measured = (folder: string) =>
  spawnSync(process.execPath, ["scripts/size.mjs", folder], { encoding: "utf-8" });

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

it("a build within the budgets passes", () => {
  const { status, stdout } = measured(built({ "index.html": 200 }));

  expect(stdout).not.toContain("OVER BUDGET");
  expect(status).toBe(0);
});

it("a first visit of more than 250 kB fails", () => {
  const { status, stdout } = measured(built({ "index.html": 200, "src/app/EditorPage.tsx": 50 }));

  expect(stdout).toMatch(/first visit.* 25\d\.\d kB .*budget 250 kB\) {2}OVER BUDGET/);
  expect(status).toBe(1);
});

it("more than is allowed in all fails, though nobody waits for it", () => {
  const { status, stdout } = measured(built({ "src/app/Toasts.tsx": 482 }));

  expect(stdout).toMatch(/all of it .*OVER BUDGET/);
  expect(status).toBe(1);
});
