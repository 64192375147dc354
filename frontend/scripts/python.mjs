/** Asks the repository's own Python, where there is one (PYTHON, or .venv). */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

const python = process.env.PYTHON ?? join(root, ".venv/bin/python");

export const hasPython = process.env.PYTHON !== undefined || existsSync(python);

export function ask(...words) {
  const paths = [join(root, "engine"), join(root, "backend"), process.env.PYTHONPATH];
  const { status, stdout, stderr } = spawnSync(python, words, {
    cwd: root,
    encoding: "utf-8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, PYTHONPATH: paths.filter(Boolean).join(delimiter) },
  });
  if (status !== 0) throw new Error(`the service could not be asked:\n${stderr}`);
  return stdout;
}

const LOOPS = `
import json, sys
from pathlib import Path
from coloop.spec import presets
from coloop_server.language import document
paths = [path for folder in sys.argv[1:] for path in sorted(Path(folder).glob("*.yaml"))]
paths = paths or [preset.path for preset in presets.list_loops()]
loops = {path.stem: document(path.read_text("utf-8")) for path in paths}
print(json.dumps(loops, ensure_ascii=False, separators=(",", ":")))
`;

/** Loops as the service gives them to the page, by name, as JSON: of a folder, or the presets. */
export function askLoops(folder) {
  return ask("-c", LOOPS, ...(folder ? [folder] : []));
}
