// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useOpenParts } from "@/features/inspector/form/FormFields";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { setField } from "@/state/commands/fields";
import { locksOf } from "@/state/document/locks";
import { setPreferences } from "@/state/preferences";
import { choose } from "../fixtures/choose";
import { smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

const actor = (fields: object) => {
  const loop = smallLoop();
  loop.nodes.actor = { ...loop.nodes.actor, kind: "actor", ...fields };
  return loop;
};

function show(loop = smallLoop()) {
  const { wrapper: Wrapper, store } = insideLoop({ document: loop });
  render(
    <Wrapper>
      <NodeInspector id="actor" />
    </Wrapper>,
  );
  return store;
}

const part = (name: RegExp) => screen.getByRole("button", { name });
const level = (name: string) => setPreferences({ level: name });

beforeEach(() => {
  useOpenParts.setState({ open: {} });
  level("simple");
});
afterEach(cleanup);

describe("parts of a form", () => {
  const loop = actor({
    rollout: { completions_per_prompt: 5, max_new_tokens: 2048 },
    algorithm: { rewards: { name: "grpo" } },
    training: { optimizer: { lr: 1e-6 }, backend: "fsdp2" },
  });

  it("a part is a line while it is closed, and generation weighs as much as learning", () => {
    show(loop);

    expect(part(/^Generation/).textContent).toBe("Generation5 a prompt · 2,048 tokens · T 1");
    expect(part(/^Learning/).textContent).toBe("Learninggrpo · lr 1e-6");
    expect(part(/^Generation/).getAttribute("aria-expanded")).toBe("true");
    expect(part(/^Learning/).getAttribute("aria-expanded")).toBe("true");
    expect(part(/^Model/).getAttribute("aria-expanded")).toBe("false");
  });

  it("a field inside of another stands in the part that the catalog names, and nowhere else", () => {
    level("advanced");
    const store = show(loop);
    fireEvent.click(part(/^Placement/));

    const backends = screen.getAllByLabelText("Backend");
    expect(backends).toHaveLength(1);
    const place = screen.getByRole("group", { name: "Placement" });
    expect(place.contains(backends[0] ?? null)).toBe(true);
    fireEvent.click(within(place).getByRole("button", { name: "Reset Backend to its default" }));
    expect(store.getState().document.nodes.actor?.training).toEqual({ optimizer: { lr: 1e-6 } });
  });

  it("opens what was edited last", () => {
    const { wrapper: Wrapper, store } = insideLoop({ document: loop });
    store.dispatch(
      setField,
      { node: "actor", path: ["model", "path"], value: "x" },
      { group: "nodes.actor.model.path" },
    );
    render(
      <Wrapper>
        <NodeInspector id="actor" />
      </Wrapper>,
    );

    expect(part(/^Model/).getAttribute("aria-expanded")).toBe("true");
  });
});

describe("levels", () => {
  it("changed values above the level are counted, shown when asked for, and kept", () => {
    const loop = actor({ rollout: { top_p: 0.9, top_k: 1, temperature: 0.5 } });
    const store = show(loop);
    expect(screen.queryByLabelText("Top k")).toBeNull();
    expect(screen.getByText("2 changed values hidden at this level")).toBeTruthy();

    fireEvent.click(screen.getByRole("button", { name: "Show" }));
    expect(screen.getByLabelText("Top k")).toHaveProperty("value", "1");
    fireEvent.click(screen.getByRole("button", { name: "Hide" }));

    expect(screen.queryByLabelText("Top k")).toBeNull();
    expect(store.getState().document).toEqual(loop);
  });

  it("a value above the level that says what holds anyway is not counted", () => {
    show(actor({ rollout: { top_p: 1.0 } }));

    expect(screen.queryByText(/hidden at this level/)).toBeNull();
  });
});

describe("fields follow the algorithm", () => {
  it("only what the loss and the advantage read is there", () => {
    level("expert");
    const store = show(actor({ algorithm: { name: "grpo" } }));
    expect(screen.getByLabelText("Clip low")).toBeTruthy();
    for (const other of ["Tau positive", "Ratio min", "Covariance share", "GAE lambda"]) {
      expect(screen.queryByLabelText(other)).toBeNull();
    }
    cleanup();

    show(actor({ algorithm: { name: "grpo", loss: "sapo" } }));
    expect(screen.getByLabelText("Tau positive")).toBeTruthy();
    expect(screen.queryByLabelText("Clip low")).toBeNull();
    expect(store.getState().history.past).toEqual([]);
  });

  it("what is set and not read stays, and says so", () => {
    level("expert");
    show(actor({ algorithm: { name: "grpo", tau_positive: 1.2 } }));

    expect(screen.getByLabelText("Tau positive")).toHaveProperty("value", "1.2");
    expect(screen.getAllByText(/^Has no effect with the current settings/)).toHaveLength(1);
  });
});

it("a long pattern has all of the width", () => {
  const loop = smallLoop();
  const pattern = "(?s)^(?:<think>.*?</think>)?\\s*<answer>(?P<answer>.*?)</answer>\\s*$";
  loop.nodes.actor = { kind: "verifier", method: "vote", answer: pattern };
  show(loop);

  const field = screen.getByLabelText("Answer");
  expect(field.tagName).toBe("TEXTAREA");
  expect(field).toHaveProperty("value", pattern);
});

it("columns of a built-in task are chosen from those that it has", () => {
  const { wrapper: Wrapper, store } = insideLoop();
  store.dispatch(setField, { node: "problems", path: ["columns"], value: { target: "nosuch" } });
  render(
    <Wrapper>
      <NodeInspector id="problems" />
    </Wrapper>,
  );

  choose(screen.getByRole("combobox", { name: /^target/ }), "answer");

  expect(store.getState().document.nodes.problems?.columns).toEqual({ target: "answer" });
});

describe("what the check knows of a node", () => {
  const plan = {
    phases: [],
    probes: [],
    explain: [],
    decisions: [
      {
        path: "nodes.actor.training.micro_batch",
        value: 4,
        reason: "the largest that fits in 6 GiB",
      },
    ],
    breakdowns: ["warm-up", "rl"].map((phase) => ({
      node: "actor",
      phase,
      is_exact: true,
      note: "",
      counts: [
        { name: "prompts", count: 8, sign: "" as const, by: 1, of: "" },
        { name: "completions", count: 40, sign: "×" as const, by: 5, of: "completions a prompt" },
        { name: "updates", count: 2.5, sign: "÷" as const, by: 16, of: "rows an update" },
      ],
    })),
  };
  const showWith = (loop = smallLoop()) => {
    const { wrapper: Wrapper, store, syncStore } = insideLoop({ document: loop });
    syncStore.setState({
      check: { report: { ok: true, diagnostics: [] }, estimate: null, plan, mode: null },
    });
    render(
      <Wrapper>
        <NodeInspector id="actor" />
      </Wrapper>,
    );
    return store;
  };

  it("the batch is broken down into numbers that multiply out, once where all phases have the same", () => {
    showWith();

    const batch = screen.getByRole("region", { name: "Batch of a step" });
    expect(
      within(batch)
        .getAllByRole("listitem")
        .map((item) => item.textContent),
    ).toEqual([
      "8prompts",
      "× 5 completions a prompt40completions",
      "÷ 16 rows an update2.5updates",
    ]);
  });

  it("a value that was decided says so and why, and can be locked; one that is set says nothing", () => {
    level("advanced");
    const store = showWith();
    expect(screen.getByRole("button", { name: "Why Micro batch is 4" })).toBeTruthy();

    fireEvent.click(screen.getByRole("button", { name: "Keep fitting from changing Micro batch" }));
    expect(locksOf(store.getState().document)).toEqual(["nodes.actor.training.micro_batch"]);
    fireEvent.click(screen.getByRole("button", { name: "Let fitting change Micro batch" }));
    expect(locksOf(store.getState().document)).toEqual([]);
    expect(screen.queryByRole("button", { name: /^Keep fitting from changing Epochs/ })).toBeNull();

    fireEvent.change(screen.getByLabelText("Micro batch"), { target: { value: "2" } });
    expect(screen.queryByRole("button", { name: /^Why Micro batch/ })).toBeNull();
  });
});
