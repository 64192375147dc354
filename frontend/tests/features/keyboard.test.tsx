// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useActionKeys } from "@/app/useActionKeys";
import { useFlowNodes } from "@/features/canvas/useFlowNodes";
import { ConnectTo } from "@/features/inspector/NodeInspector";
import { AddSearch } from "@/features/palette/AddSearch";
import type { Action, Scope } from "@/state/actions";
import { hideAddSearch, showAddSearch, useAddSearch } from "@/state/dialogs";
import { setPreferences } from "@/state/preferences";
import { choose } from "../fixtures/choose";
import { insideLoop } from "../fixtures/open";

beforeEach(() => {
  Element.prototype.scrollIntoView ??= () => {};
});
afterEach(() => {
  cleanup();
  hideAddSearch();
  document.body.replaceChildren();
});

describe("Tab", () => {
  function listen() {
    const run = vi.fn();
    const actions: Action[] = [{ id: "add", label: "Add", keys: ["a", "tab"], section: "", run }];
    renderHook(() => useActionKeys(actions));
    const pane = document.createElement("div");
    pane.className = "react-flow__pane";
    const button = document.createElement("button");
    document.body.append(pane, button);
    const tab = () => fireEvent.keyDown(document.activeElement ?? document.body, { key: "Tab" });
    return { run, pane, button, tab };
  }

  it("moves the focus as long as the canvas was not pressed", () => {
    const { run, tab } = listen();

    const isLeftToTheBrowser = tab();

    expect(isLeftToTheBrowser).toBe(true);
    expect(run).not.toHaveBeenCalled();
  });

  it("adds a node once after the canvas was pressed", () => {
    const { run, pane, tab } = listen();
    fireEvent.pointerDown(pane);

    tab();
    tab();

    expect(run).toHaveBeenCalledTimes(1);
  });

  it("moves the focus again when something was focused since", () => {
    const { run, pane, button, tab } = listen();
    fireEvent.pointerDown(pane);
    button.focus();
    button.blur();

    tab();

    expect(run).not.toHaveBeenCalled();
  });
});

describe("where keys count", () => {
  function listen() {
    const ran: string[] = [];
    const action = (id: string, keys: string[], scope?: Scope): Action => ({
      id,
      label: id,
      keys,
      section: "",
      run: () => ran.push(id),
      ...(scope ? { scope } : {}),
    });
    renderHook(() =>
      useActionKeys([
        action("delete", ["backspace"], "canvas"),
        action("yaml", ["y"]),
        action("undo", ["mod+z"]),
        action("save", ["mod+s"], "always"),
      ]),
    );
    document.body.innerHTML = `
      <div class="react-flow"><div class="react-flow__node" tabindex="0" role="group"></div>
        <button id="zoom"></button></div>
      <button id="button"></button><span id="slider" role="slider" tabindex="0"></span>
      <input id="checkbox" type="checkbox" /><input id="text" />
      <div id="choice" role="combobox" tabindex="0"></div>`;
    const press = (where: string) => {
      const target = where === "body" ? document.body : document.querySelector(where);
      ran.length = 0;
      for (const key of ["Backspace", "y"]) fireEvent.keyDown(target as Element, { key });
      for (const key of ["z", "s"]) fireEvent.keyDown(target as Element, { key, ctrlKey: true });
      return [...ran];
    };
    return press;
  }

  it.each([
    ["body", ["delete", "yaml", "undo", "save"]],
    [".react-flow__node", ["delete", "yaml", "undo", "save"]],
    ["#zoom", ["yaml", "undo", "save"]],
    ["#button", ["yaml", "undo", "save"]],
    ["#slider", ["yaml", "undo", "save"]],
    ["#checkbox", ["yaml", "undo", "save"]],
    ["#choice", ["undo", "save"]],
    ["#text", ["save"]],
  ])("with the focus on %s only %s", (where, expected) => {
    const press = listen();

    expect(press(where)).toEqual(expected);
  });

  it("single letters can be switched off", () => {
    const press = listen();
    setPreferences({ hasSingleKeys: false });

    expect(press("body")).toEqual(["delete", "undo", "save"]);

    setPreferences({ hasSingleKeys: true });
  });
});

const request = { screen: { x: 0, y: 0 }, flow: { x: 0, y: 0 } };

function PageWithSearch() {
  const isOpen = useAddSearch((state) => state.request !== null);
  return (
    <>
      <button type="button">before</button>
      {isOpen ? <AddSearch request={request} /> : null}
    </>
  );
}

describe("the search that adds a node", () => {
  it("gives the focus back when it closes", () => {
    const { wrapper } = insideLoop();
    render(<PageWithSearch />, { wrapper });
    const before = screen.getByRole("button", { name: "before" });
    before.focus();
    act(() => showAddSearch(request));
    expect(document.activeElement).toBe(screen.getByPlaceholderText("Add a node"));

    fireEvent.keyDown(screen.getByPlaceholderText("Add a node"), { key: "Escape" });

    expect(document.activeElement).toBe(before);
  });

  it.each(["reference", "Critic", "ppo"])("has what is most likely meant by %s first", (wish) => {
    const { wrapper } = insideLoop();
    render(<PageWithSearch />, { wrapper });
    act(() => showAddSearch(request));

    fireEvent.change(screen.getByPlaceholderText("Add a node"), { target: { value: wish } });

    const chosen = screen.getAllByRole("option", { selected: true });
    const meant = { reference: "Reference", Critic: "Critic", ppo: "Actor" }[wish];
    expect(chosen.map((one) => one.textContent)).toEqual([meant]);
    expect(screen.getAllByRole("option")[0]).toBe(chosen[0]);
  });
});

/** A drag moves boxes and does nothing else. */
const NOTHING_MORE: Parameters<typeof useFlowNodes>[0] = {
  snap: (changes) => changes,
  drop: () => false,
};

describe("a node of the graph", () => {
  it("says its name and kind where the focus is on it", () => {
    const { wrapper } = insideLoop();

    const { result } = renderHook(() => useFlowNodes(NOTHING_MORE), { wrapper });

    expect(result.current.nodes.map((node) => node.ariaLabel)).toContain("problems, Dataset");
  });
});

describe("connecting from the settings", () => {
  function show(node: string) {
    const { wrapper, store } = insideLoop();
    render(<ConnectTo node={node} />, { wrapper });
    const list = screen.getByLabelText("Connect to");
    fireEvent.focus(list);
    const wish = () => choose(list, /^start.log_probs → actor.reference/);
    return { store, wish };
  }

  it("choosing in the list connects nothing", () => {
    const { store, wish } = show("start");
    const before = store.getState().document;

    wish();

    expect(store.getState().document).toBe(before);
  });

  it("what a node gives may teach the node itself", () => {
    const { store } = show("actor");
    const list = screen.getByLabelText("Connect to");
    fireEvent.focus(list);
    choose(list, /^actor.rollouts → actor.demonstrations/);

    fireEvent.click(screen.getByRole("button", { name: "Connect" }));

    expect(store.getState().document.edges.at(-1)).toEqual({
      from: "actor.rollouts",
      to: "actor.demonstrations",
    });
  });

  it("the button connects what is chosen, and the list has the focus again", () => {
    const { store, wish } = show("start");
    wish();

    fireEvent.click(screen.getByRole("button", { name: "Connect" }));

    expect(store.getState().document.edges.at(-1)).toEqual({
      from: "start.log_probs",
      to: "actor.reference",
    });
    expect(document.activeElement).toBe(screen.getByLabelText("Connect to"));
    expect(screen.getByRole("button", { name: "Connect" })).toHaveProperty("disabled", true);
  });
});
