import type * as routes from "@/api/routes";
import type { Change, Loop } from "@/api/types";

type CopyApi = Pick<typeof routes, "patchYaml" | "createLoop">;

/** A new loop of this text under another name, which the text says too: the page goes by the text. */
export async function copyLoop(yaml: string, name: string, api: CopyApi): Promise<Loop> {
  const named = await api.patchYaml({
    yaml,
    changes: [{ op: "set", path: "name", value: name }],
  });
  return api.createLoop({ name, yaml: named.yaml });
}

type NewApi = Pick<typeof routes, "fetchLoopPreset" | "patchYaml" | "createLoop">;

export type Beginning = { mode: string } | { preset: string };

const EMPTY =
  "coloop: 1\nname: untitled\nmode: online\n\nnodes: {}\nedges: []\n\nschedule: {steps: 100}\nhardware: {preset: cpu}\nrun: {seed: 0}\n";

export async function newLoop(name: string, begin: Beginning, api: NewApi): Promise<Loop> {
  const changes: Change[] = [{ op: "set", path: "name", value: name }];
  if ("mode" in begin) changes.push({ op: "set", path: "mode", value: begin.mode });
  const text = "preset" in begin ? (await api.fetchLoopPreset(begin.preset)).yaml : EMPTY;
  const { yaml } = await api.patchYaml({ yaml: text, changes });
  return api.createLoop({ name, yaml });
}
