import type * as routes from "@/api/routes";
import type { Change, Loop } from "@/api/types";

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

export type Beginning = { mode: string } | { preset: string };

const EMPTY =
  "coloop: 1\nname: untitled\nmode: online\n\nnodes: {}\nedges: []\n\nschedule: {steps: 100}\nhardware: {preset: cpu}\nrun: {seed: 0}\n";

export async function newLoop(name: string, begin: Beginning, api: NewApi): Promise<Loop> {
  if ("preset" in begin) {
    return copyLoop((await api.fetchLoopPreset(begin.preset)).yaml, name, api);
  }
  return copyLoop(EMPTY, name, api, [{ op: "set", path: "mode", value: begin.mode }]);
}
