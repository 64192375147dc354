import { describe, expect, it } from "vitest";
import { fromSpec } from "@/document/convert";
import { applyFit } from "@/state/commands/applyChanges";
import { setField, setHardware } from "@/state/commands/fields";
import { catalog } from "../fixtures/loops";

const named = (name: string) =>
  fromSpec({
    coloop: 1,
    name,
    nodes: {
      actor: { kind: "actor", model: { type: "pretrained", path: "Qwen/Qwen2.5-7B-Instruct" } },
      judge: { kind: "reward", source: { type: "builtin", name: "exact_match" } },
    },
    edges: [],
    schedule: { steps: 1 },
    hardware: { preset: "8xH100" },
  });

const onMachine = (name: string) => setHardware(named(name), { catalog, preset: "32xH100" }).name;
const withModel = (name: string, path: string) =>
  setField(named(name), { node: "actor", path: ["model", "path"], value: path }).name;

describe("the name of a loop", () => {
  it("goes with its machine", () => {
    expect(onMachine("grpo-qwen2.5-7b-8xH100")).toBe("grpo-qwen2.5-7b-32xH100");
    expect(onMachine("ours on 8xh100, second try")).toBe("ours on 32xH100, second try");
    expect(onMachine("8xH100 first")).toBe("32xH100 first");
  });

  it("goes with a way that takes another machine", () => {
    const edits = [{ op: "set" as const, path: "hardware.preset", value: "8xH200" }];

    expect(applyFit(named("grpo-8xH100"), { catalog, edits }).name).toBe("grpo-8xH200");
  });

  it("loses a model that the loop has no longer", () => {
    expect(withModel("grpo-qwen2.5-7b-8xH100", "Qwen/Qwen2.5-32B")).toBe("grpo-8xH100");
    expect(withModel("qwen2.5-7b on sums", "models/mine")).toBe("on sums");
    // Letter by letter it stays while it is still true.
    expect(withModel("grpo-qwen2.5-7b-8xH100", "Qwen/Qwen2.5-7B")).toBe("grpo-qwen2.5-7b-8xH100");
  });

  it("stays where it speaks of neither, or of nothing else", () => {
    expect(onMachine("mine")).toBe("mine");
    expect(onMachine("18xH100")).toBe("18xH100");
    expect(onMachine("8xH100b")).toBe("8xH100b");
    expect(withModel("mine", "Qwen/Qwen2.5-32B")).toBe("mine");
    expect(withModel("qwen2.5-7b", "Qwen/Qwen2.5-32B")).toBe("qwen2.5-7b");
  });
});
