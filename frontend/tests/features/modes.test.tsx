// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ModeSelect } from "@/app/head/TopBar";
import { modeNamed, ofOtherModes, setAmong } from "@/catalog/modes";
import type { LoopDocument } from "@/document/types";
import { CanvasEmpty } from "@/features/canvas/Canvas";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { AddSearch } from "@/features/palette/AddSearch";
import { Palette } from "@/features/palette/Palette";
import { setPreferences } from "@/state/preferences";
import { choose } from "../fixtures/choose";
import { catalog, smallLoop } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";

function inMode(mode: string | undefined, change: (loop: LoopDocument) => void = () => {}) {
  const document = smallLoop();
  const { mode: _, ...rest } = document.rest;
  document.rest = mode === undefined ? rest : { ...rest, mode };
  change(document);
  return insideLoop({ document });
}

function show(panel: React.ReactNode, open: ReturnType<typeof insideLoop>) {
  const Wrapper = open.wrapper;
  render(<Wrapper>{panel}</Wrapper>);
  return open.store;
}

const options = (list: HTMLElement) => {
  fireEvent.keyDown(list, { key: "Enter" });
  return within(screen.getByRole("listbox"))
    .getAllByRole("option")
    .map((option) => option.textContent ?? "");
};

beforeEach(() => setPreferences({ level: "advanced" }));
afterEach(cleanup);

describe("what a mode offers", () => {
  it("an unknown mode is the first", () => {
    expect(modeNamed(catalog, "sideways").name).toBe("online");
  });

  it("an output that only another mode's node reads is left out", () => {
    const outputs = (mode: string) => [...ofOtherModes(modeNamed(catalog, mode), "actor").outputs];

    expect(outputs("online")).toEqual([]);
    expect(outputs("offline")).toEqual(["returns"]);
  });

  it("settings that are set are found among those of other modes", () => {
    const { fields } = ofOtherModes(modeNamed(catalog, "offline"), "actor");
    const node = { rollout: { max_new_tokens: 4, turns: { max: 2 }, mask: null }, credit: {} };

    expect(setAmong(node, fields)).toEqual(["rollout.turns"]);
  });

  it("the palette has its kinds, and the others where asked for", () => {
    show(<Palette />, inMode("offline"));
    expect(screen.queryByRole("button", { name: "Critic" })).toBeNull();

    fireEvent.click(screen.getByRole("button", { name: /^Other modes/ }));
    expect(screen.getByRole("button", { name: "Critic" })).toBeDefined();
  });

  it("the palette's search finds those of other modes as well", () => {
    show(<Palette />, inMode("offline"));
    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "critic" } });

    expect(screen.getByRole("button", { name: "Critic" })).toBeDefined();
  });

  it("the search that adds a node has kinds of other modes last", () => {
    const request = { screen: { x: 0, y: 0 }, flow: { x: 0, y: 0 } };
    show(<AddSearch request={request} />, inMode("offline"));
    const kinds = screen.getAllByRole("option").map((option) => option.textContent);

    expect(kinds).toHaveLength(Object.keys(catalog.kinds).length);
    expect(kinds.slice(-4)).toEqual(["Critic", "Tool", "Search", "Environment"]);
  });
});

describe("the mode of a loop", () => {
  it("is written by choosing it, and nothing else changes", () => {
    const store = show(<ModeSelect />, inMode("online"));
    const before = store.getState().document;
    choose(screen.getByLabelText("Mode of the loop"), /^Reward modeling/);

    const after = store.getState().document;
    expect(after.rest.mode).toBe("reward_modeling");
    expect({ ...after, rest: { ...after.rest, mode: "online" } }).toEqual(before);
    expect(store.getState().history.past.at(-1)?.label).toBe("Mode: reward modeling");
  });

  it("is the one that the server finds where the loop names none", () => {
    const open = inMode(undefined);
    const report = { ok: true, diagnostics: [] };
    open.syncStore.setState({ check: { report, estimate: null, plan: null, mode: "offline" } });
    const store = show(<ModeSelect />, open);

    expect(screen.getByLabelText("Mode of the loop").textContent).toBe("Offline");
    expect(store.getState().document.rest).not.toHaveProperty("mode");
  });

  it("is said on an empty canvas in a sentence, and not asked for again", () => {
    show(<CanvasEmpty />, inMode("offline"));

    const { help } = modeNamed(catalog, "offline");
    expect(screen.getByText(help, { exact: false })).toBeDefined();
    expect(screen.queryByRole("radio")).toBeNull();
  });
});

describe("the form of a node", () => {
  it("leaves out what belongs to other modes, until it is asked for", () => {
    show(<NodeInspector id="actor" />, inMode("offline"));
    expect(screen.queryByRole("button", { name: /^Credit/ })).toBeNull();

    fireEvent.click(screen.getByRole("button", { name: "Show all" }));
    expect(screen.getByRole("button", { name: /^Credit/ })).toBeDefined();
    fireEvent.click(screen.getByRole("button", { name: "Only offline" }));
    expect(screen.queryByRole("button", { name: /^Credit/ })).toBeNull();
  });

  it("announces what is set and left out", () => {
    const open = inMode("offline", (loop) => {
      loop.nodes.actor = {
        kind: "actor",
        credit: { combine: "product" },
        algorithm: { rewards: { name: "grpo" } },
      };
    });
    show(<NodeInspector id="actor" />, open);

    const note = screen.getByText(/settings of other modes/);
    expect(note.textContent).toBe("2 settings of other modes are set: credit, algorithm.rewards.");
  });

  it("lists the algorithms of the mode, and the one that is chosen", () => {
    const open = inMode("offline", (loop) => {
      loop.nodes.actor = { kind: "actor", algorithm: { name: "grpo" } };
    });
    show(<NodeInspector id="actor" />, open);
    const titles = options(screen.getByLabelText("one algorithm, name"));

    expect(titles.some((title) => title.startsWith("DPO"))).toBe(true);
    expect(titles.some((title) => title.startsWith("GRPO"))).toBe(true);
    expect(titles.some((title) => title.startsWith("PPO"))).toBe(false);
  });

  it("lists the algorithms of one port as well", () => {
    const open = inMode("online", (loop) => {
      loop.nodes.actor = { kind: "actor", algorithm: { pairs: { name: "dpo" } } };
    });
    show(<NodeInspector id="actor" />, open);
    const names = options(screen.getByLabelText("Algorithm name, Pairs, Algorithm"));

    expect(names).toContain("ipo");
    expect(names).not.toContain("kto");
  });
});
