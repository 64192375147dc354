import type * as routes from "@/api/routes";
import type { Loop } from "@/api/types";

type CopyApi = Pick<typeof routes, "patchYaml" | "createLoop">;

/** A new loop of this text under another name, which the text says too: the page goes by the text. */
export async function copyLoop(yaml: string, name: string, api: CopyApi): Promise<Loop> {
  const named = await api.patchYaml({
    yaml,
    changes: [{ op: "set", path: "name", value: name }],
  });
  return api.createLoop({ name, yaml: named.yaml });
}
