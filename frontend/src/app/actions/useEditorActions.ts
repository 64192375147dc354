import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useMemo } from "react";
import { toast } from "sonner";
import { useLocation } from "wouter";
import { edgeIndex, edgeKeys, portRef } from "@/document/edges";
import { poolsOf } from "@/document/pools";
import { useAbout } from "@/features/about/useAbout";
import { useExport } from "@/features/loops/useExport";
import { useRunControls } from "@/features/runs/start/useRunControls";
import { formatPlural } from "@/lib/format";
import { type Action, inSection } from "@/state/actions";
import { reveal, toLoop, useEdgeCutter } from "@/state/canvas";
import { removeItems } from "@/state/commands/nodes";
import { showAddSearch, showDialog, tryValues } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import type { DocumentStore } from "@/state/document/store";
import { followRow, startFinding, unlight } from "@/state/lit";
import { setPreferences, startTour, usePalette, usePreferences } from "@/state/preferences";
import { clearSelection, select, useSelection } from "@/state/selection";
import { useAddNote } from "@/state/useAddNode";
import { ALIGNMENTS, DISTRIBUTIONS, useArrange } from "@/state/useArrange";
import { useClipboard } from "@/state/useClipboard";
import { useGroups } from "@/state/useGroups";
import { usePlacing } from "@/state/usePlacing";
import { panelsOf } from "../panels";

const edit = inSection("Edit");
const view = inSection("View");
const goTo = inSection("Go to");
const help = inSection("Help");
const ofLoop = inSection("Loop");
const ofLayout = inSection("Arrange");

/** Every command of the page with a graph, for keys, palette and help. A run's graph is only looked at. */
export function useEditorActions(): Action[] {
  const { runId } = useOpenLoop();
  const changes = useEditActions();
  const focus = useFocusActions();
  const graph = useGraphActions();
  const layout = useLayoutActions();
  const loop = useLoopActions();
  const views = useViewActions();
  const selection = useSelectionActions();
  const page = usePageActions();
  return useMemo(
    () => [
      ...(runId ? [] : [...changes, ...focus, ...graph, ...layout, ...loop]),
      ...views,
      ...selection,
      ...page,
    ],
    [runId, changes, focus, graph, layout, loop, views, selection, page],
  );
}

const chosenNodes = () => useSelection.getState().nodes;
const hasNodes = () => chosenNodes().length > 0;

export function travel(store: DocumentStore, way: "undo" | "redo"): void {
  const label = store[way]();
  if (label) toast(`${way === "undo" ? "Undid" : "Redid"}: ${label}`, { id: "history" });
}

function useEditActions(): Action[] {
  const { store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  const flow = useStoreApi();
  const { arrange } = useArrange();
  const { cut, duplicate } = useClipboard();
  const { group } = useGroups();
  return useMemo(() => {
    const isEnabled = () => !store.getState().isReadonly;
    const onNodes = { isEnabled: () => isEnabled() && hasNodes() };
    const add = () => {
      const screen = middleOf(flow.getState().domNode, 144);
      showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)), isUnplaced: true });
    };
    const remove = () => {
      const { nodes, edges } = useSelection.getState();
      store.dispatch(removeItems, { nodes, edges });
      clearSelection();
    };
    const canRemove = () => isEnabled() && (hasNodes() || useSelection.getState().edges.length > 0);
    return [
      edit("add", "Add a node", "a tab", add, { isEnabled }),
      edit("undo", "Undo", "mod+z", () => travel(store, "undo"), { isEnabled }),
      edit("redo", "Redo", "mod+shift+z mod+y", () => travel(store, "redo"), { isEnabled }),
      edit("duplicate", "Duplicate", "mod+d", () => duplicate(chosenNodes()), onNodes),
      edit("group", "Group the selection", "mod+g", group, {
        isEnabled: () => isEnabled() && chosenNodes().length > 1,
      }),
      edit("cut", "Cut to the clipboard", "mod+x", () => void cut(chosenNodes()), {
        ...onNodes,
        scope: "canvas",
      }),
      edit(
        "saveBlock",
        "Save the selection as a block",
        "",
        () => showDialog("saveBlock"),
        onNodes,
      ),
      edit("delete", "Delete", "backspace delete", remove, {
        isEnabled: canRemove,
        scope: "canvas",
      }),
      view("arrange", "Arrange", "l", arrange, { isEnabled }),
    ];
  }, [store, screenToFlowPosition, flow, arrange, cut, duplicate, group]);
}

const FIELD =
  '[data-field] :is(input, textarea, [contenteditable="true"], [role="combobox"], [role="switch"])';

function useFocusActions(): Action[] {
  const { store } = useOpenLoop();
  return useMemo(() => {
    const focus = (selector: string) => {
      const found = document.querySelector<HTMLElement>(selector);
      found?.focus();
      if (found instanceof HTMLInputElement) found.select();
    };
    const inSettings = (selector: string) => () => {
      setPreferences({ isInspectorOpen: true });
      requestAnimationFrame(() => focus(selector));
    };
    const box = () => {
      const [id] = chosenNodes();
      focus(`.react-flow__node${id ? `[data-id="${CSS.escape(id)}"]` : '[tabindex="0"]'}`);
    };
    const isEnabled = () => !store.getState().isReadonly && chosenNodes().length === 1;
    const name = inSettings('[aria-label="Name of the node"]');
    const connection = inSettings('[aria-label="Connect to"]');
    return [
      goTo("box", "Go to the selected node, or the first", "b", box),
      goTo("settings", "Go to the settings", "e", inSettings(FIELD)),
      edit("rename", "Rename the node", "f2", name, { isEnabled }),
      edit("connect", "Connect the node to another", "c", connection, { isEnabled }),
    ];
  }, [store]);
}

function useGraphActions(): Action[] {
  const { store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  const flow = useStoreApi();
  const addNote = useAddNote();
  return useMemo(() => {
    const isEnabled = () => !store.getState().isReadonly;
    const middle = () => middleOf(flow.getState().domNode);
    const edgesOf = (nodes: readonly string[]) => {
      const { edges } = store.getState().document;
      const isOf = (end: string) => nodes.includes(portRef(end).node);
      return edgeKeys(edges).filter(
        (_, at) => isOf(edges[at]?.from ?? "") || isOf(edges[at]?.to ?? ""),
      );
    };
    const chosenEdge = () => {
      const { nodes, edges } = useSelection.getState();
      return edges.length === 1 && nodes.length === 0 ? edges[0] : undefined;
    };
    const insert = () => {
      const edge = chosenEdge();
      if (edge === undefined || edgeIndex(store.getState().document, edge) < 0) return;
      const line = document.querySelector(
        `.react-flow__edge[data-id="${CSS.escape(edge)}"] .loop-edge`,
      );
      const box = line?.getBoundingClientRect();
      const screen = box ? { x: box.x + box.width / 2, y: box.y + box.height / 2 } : middle();
      showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)), edge });
    };
    const disconnect = () => {
      const edges = edgesOf(chosenNodes());
      const label = `Cut ${formatPlural(edges.length, "connection")}`;
      store.dispatch(removeItems, { nodes: [], edges }, { label });
    };
    const startCutting = () => useEdgeCutter.setState({ isOn: true });
    const note = () => addNote(toLoop(screenToFlowPosition(middle())));
    return [
      edit("insert", "Insert a node into the connection", "i", insert, {
        isEnabled: () => isEnabled() && chosenEdge() !== undefined,
      }),
      edit("disconnect", "Cut all connections of the selection", "x", disconnect, {
        isEnabled: () => isEnabled() && edgesOf(chosenNodes()).length > 0,
      }),
      edit("cutEdges", "Cut connections by dragging across them", "k", startCutting, {
        isEnabled,
      }),
      edit("note", "Add a note", "n", note, { isEnabled }),
    ];
  }, [store, screenToFlowPosition, flow, addNote]);
}

export function useLayoutActions(): Action[] {
  const { store } = useOpenLoop();
  const { align, arrangePools, distribute } = useArrange();
  const { canPlace, place, placeInNext } = usePlacing();
  const pools = useDocument((state) =>
    poolsOf(state.document)
      .map(({ name }) => name)
      .join(" "),
  );
  return useMemo(() => {
    const isEnabled = () =>
      !store.getState().isReadonly && poolsOf(store.getState().document).length > 0;
    const has = (least: number) => ({
      isEnabled: () => !store.getState().isReadonly && chosenNodes().length >= least,
    });
    const where = { isEnabled: canPlace };
    return [
      ...ALIGNMENTS.map(([by, label]) =>
        ofLayout(`align-${by}`, label, "", () => align(by, label), has(2)),
      ),
      ...DISTRIBUTIONS.map(([along, label]) =>
        ofLayout(`distribute-${along}`, label, "", () => distribute(along, label), has(3)),
      ),
      ofLayout("arrangePools", "Tidy by pools", "", arrangePools, { isEnabled }),
      ofLayout("nextPool", "Place in the next pool", "p", placeInNext, where),
      ...pools
        .split(" ")
        .filter(Boolean)
        .map((pool) =>
          ofLayout(`pool-${pool}`, `Place in pool ${pool}`, "", () => place(pool), where),
        ),
      ofLayout("noPool", "Take out of the pool", "", () => place(null), where),
    ];
  }, [store, align, distribute, canPlace, place, placeInNext, arrangePools, pools]);
}

function useLoopActions(): Action[] {
  const { sync } = useOpenLoop();
  const { exportYaml, exportPng } = useExport();
  const { start } = useRunControls();
  const about = useAbout();
  return useMemo(() => {
    const picture = "Export as a picture, with the loop in it";
    return [
      view("palette", "Node list", "[", () => usePalette.getState().toggle()),
      ofLoop("save", "Save now", "mod+s", () => void sync?.flush(), { scope: "always" }),
      ofLoop("run", "Run", "mod+enter", () => start()),
      ofLoop("tryValues", "Try values: a sweep", "", () => tryValues(null)),
      ofLoop("export", "Export YAML", "mod+e", () => void exportYaml()),
      ofLoop("exportPng", picture, "mod+shift+e", () => void exportPng()),
      ofLoop("exportJob", "Export for a cluster", "", () => showDialog("jobFile")),
      ofLoop("history", "History of this loop", "", () => showDialog("history")),
      help("about", "About this loop", "", about.open, { isEnabled: () => about.preset !== null }),
      ofLoop("newLoop", "New loop", "", () => showDialog("newLoop")),
      ofLoop("gallery", "Open the gallery", "g", () => showDialog("gallery")),
      help("tour", "Tour of the page", "", startTour),
      ...panelsOf("loop").map(([dockTab, { label, keys }]) =>
        goTo(dockTab, label, keys, () => setPreferences({ isDockOpen: true, dockTab })),
      ),
    ];
  }, [sync, exportYaml, exportPng, start, about]);
}

function useViewActions(): Action[] {
  const { zoomIn, zoomOut } = useReactFlow();
  return useMemo(() => {
    const toggle = (name: "hasMinimap" | "isInspectorOpen" | "isDockOpen") => () =>
      setPreferences({ [name]: !usePreferences.getState()[name] });
    return [
      goTo("find", "Find a node", "mod+f /", startFinding),
      goTo(
        "follow",
        "Follow a row of the node through the graph",
        "w",
        () => {
          const [node] = chosenNodes();
          if (node !== undefined) followRow(node);
        },
        { isEnabled: () => chosenNodes().length === 1 },
      ),
      view("fit", "Show everything", "1", () => reveal(null)),
      view("zoomIn", "Zoom in", "+ =", () => void zoomIn({ duration: 120 })),
      view("zoomOut", "Zoom out", "-", () => void zoomOut({ duration: 120 })),
      view("overview", "Toggle the overview", "m", toggle("hasMinimap")),
      view("inspector", "Toggle the settings panel", "]", toggle("isInspectorOpen")),
      view("dock", "Toggle the lower panel", "j", toggle("isDockOpen")),
    ];
  }, [zoomIn, zoomOut]);
}

function useSelectionActions(): Action[] {
  const { store } = useOpenLoop();
  const { copy } = useClipboard();
  return useMemo(() => {
    const selectAll = () => {
      const { nodes, edges } = store.getState().document;
      select({ nodes: Object.keys(nodes), edges: edgeKeys(edges) });
    };
    const isEnabled = () => hasNodes() && (window.getSelection()?.toString() ?? "") === "";
    return [
      edit("selectAll", "Select everything", "mod+a", selectAll),
      edit("copy", "Copy", "mod+c", () => void copy(chosenNodes()), { isEnabled }),
      edit("clear", "Clear the selection", "escape", () => {
        clearSelection();
        unlight();
      }),
    ];
  }, [store, copy]);
}

function usePageActions(): Action[] {
  const [, navigate] = useLocation();
  return useMemo(
    () => [
      help("commands", "All commands", "mod+k", () => showDialog("commands"), { scope: "always" }),
      help("shortcuts", "Keyboard shortcuts", "?", () => showDialog("shortcuts")),
      goTo("runs", "Go to runs", "", () => navigate("/runs")),
      goTo("loops", "Go to loops", "", () => navigate("/loops")),
    ],
    [navigate],
  );
}

/** Near the middle of the graph's part of the window, in pixels of the window. */
function middleOf(graph: HTMLElement | null, left = 0): { x: number; y: number } {
  const { x = 0, y = 0, width = 0, height = 0 } = graph?.getBoundingClientRect() ?? {};
  return { x: x + width / 2 - left, y: y + height / 3 };
}
