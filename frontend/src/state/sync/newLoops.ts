import type * as routes from "@/api/routes";
import type { Change, Loop } from "@/api/types";
import { writeEdge } from "@/document/edges";
import type { Fragment } from "@/document/fragment";

type CopyApi = Pick<typeof routes, "patchYaml" | "createLoop">;

/** A new loop of this text under another name, which the text says too: the page goes by the text. */
export async function copyLoop(
  text: string,
  name: string,
  api: CopyApi,
  changes: readonly Change[] = [],
): Promise<Loop> {
  const named: Change = { op: "set", path: "name", value: name };
  const { yaml } = await api.patchYaml({ yaml: text, changes: [named, ...changes] });
  return api.createLoop({ name, yaml });
}

type NewApi = CopyApi & Pick<typeof routes, "fetchLoopPreset">;

/** What a loop begins as: a preset, a text, or a loop of a mode with nothing in it but, where one is named, a block. */
export type Beginning = { mode: string; parts?: Parts } | { preset: string } | { yaml: string };

type Parts = Pick<Fragment, "nodes" | "edges">;

const EMPTY =
  "coloop: 1\nname: untitled\nmode: online\n\nnodes: {}\nedges: []\n\nschedule: {steps: 100}\nhardware: {preset: cpu}\nrun: {seed: 0}\n";

export async function newLoop(name: string, begin: Beginning, api: NewApi): Promise<Loop> {
  if ("preset" in begin) {
    return copyLoop((await api.fetchLoopPreset(begin.preset)).yaml, name, api);
  }
  if ("yaml" in begin) return copyLoop(begin.yaml, name, api);
  const changes: Change[] = [{ op: "set", path: "mode", value: begin.mode }];
  if (begin.parts) {
    const { nodes, edges } = begin.parts;
    changes.push({ op: "set", path: "nodes", value: { ...nodes } });
    changes.push({ op: "set", path: "edges", value: edges.map(writeEdge) });
  }
  return copyLoop(EMPTY, name, api, changes);
}
