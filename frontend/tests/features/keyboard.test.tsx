// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useActionKeys } from "@/app/useActionKeys";
import { useFlowNodes } from "@/features/canvas/useFlowNodes";
import { ConnectTo } from "@/features/inspector/ConnectTo";
import { AddSearch } from "@/features/palette/AddSearch";
import type { Action } from "@/session/actions";
import { useAddSearch } from "@/session/addSearch";
import { insideLoop } from "../fixtures/open";

beforeEach(() => {
  Element.prototype.scrollIntoView ??= () => {};
});
afterEach(() => {
  cleanup();
  useAddSearch.getState().hide();
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
    act(() => useAddSearch.getState().show(request));
    expect(document.activeElement).toBe(screen.getByPlaceholderText("Add a node"));

    fireEvent.keyDown(screen.getByPlaceholderText("Add a node"), { key: "Escape" });

    expect(document.activeElement).toBe(before);
  });
});

describe("a node of the graph", () => {
  it("says its name and kind where the focus is on it", () => {
    const { wrapper } = insideLoop();

    const { result } = renderHook(() => useFlowNodes(), { wrapper });

    expect(result.current.nodes.map((node) => node.ariaLabel)).toContain("problems, Dataset");
  });
});

describe("connecting from the settings", () => {
  function show(node: string) {
    const { wrapper, store } = insideLoop();
    render(<ConnectTo node={node} />, { wrapper });
    const list = screen.getByLabelText("Connect to");
    fireEvent.focus(list);
    const wish = () =>
      fireEvent.change(list, { target: { value: "start.log_probs → actor.reference" } });
    return { store, wish };
  }

  it("choosing in the list connects nothing", () => {
    const { store, wish } = show("start");
    const before = store.getState().document;

    wish();

    expect(store.getState().document).toBe(before);
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
