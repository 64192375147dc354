import { useReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import { useLocation } from "wouter";
import { edgeKeys } from "@/document/edges";
import { poolsOf } from "@/document/pools";
import type { Action } from "@/state/actions";
import { useViewport } from "@/state/canvas";
import { showDialog } from "@/state/dialogs";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { setPreferences, usePreferences } from "@/state/preferences";
import { clearSelection, select, useSelection } from "@/state/selection";
import { ALIGNMENTS, DISTRIBUTIONS, useAlign, useArrange } from "@/state/useArrange";
import { useClipboard } from "@/state/useClipboard";
import { usePlacing } from "@/state/usePlacing";
import { useEditActions } from "./useEditActions";
import { useGraphActions } from "./useGraphActions";
import { useLoopActions } from "./useLoopActions";

/** Every command of the page with a graph, for keys, palette and help. A run's graph is only looked at. */
export function useEditorActions(): Action[] {
  const { runId } = useOpenLoop();
  const edit = useEditActions();
  const focus = useFocusActions();
  const graph = useGraphActions();
  const layout = useLayoutActions();
  const loop = useLoopActions();
  const view = useViewActions();
  const selection = useSelectionActions();
  const page = usePageActions();
  return useMemo(
    () => [
      ...(runId ? [] : [...edit, ...focus, ...graph, ...layout, ...loop]),
      ...view,
      ...selection,
      ...page,
    ],
    [runId, edit, focus, graph, layout, loop, view, selection, page],
  );
}

function usePageActions(): Action[] {
  const [, navigate] = useLocation();
  return useMemo(
    (): Action[] => [
      {
        id: "commands",
        label: "All commands",
        keys: ["mod+k"],
        scope: "always",
        section: "Help",
        run: () => showDialog("commands"),
      },
      {
        id: "shortcuts",
        label: "Keyboard shortcuts",
        keys: ["?"],
        section: "Help",
        run: () => showDialog("shortcuts"),
      },
      { id: "runs", label: "Go to runs", keys: [], section: "Go to", run: () => navigate("/runs") },
      {
        id: "loops",
        label: "Go to loops",
        keys: [],
        section: "Go to",
        run: () => navigate("/loops"),
      },
    ],
    [navigate],
  );
}

function useSelectionActions(): Action[] {
  const { store } = useOpenLoop();
  const { copy } = useClipboard();
  return useMemo(
    () => [
      {
        id: "selectAll",
        label: "Select everything",
        keys: ["mod+a"],
        section: "Edit",
        run: () => {
          const { document } = store.getState();
          select({ nodes: Object.keys(document.nodes), edges: edgeKeys(document.edges) });
        },
      },
      {
        id: "copy",
        label: "Copy",
        keys: ["mod+c"],
        section: "Edit",
        isEnabled: () => useSelection.getState().nodes.length > 0 && !hasTextSelection(),
        run: () => void copy(useSelection.getState().nodes),
      },
      {
        id: "clear",
        label: "Clear the selection",
        keys: ["escape"],
        section: "Edit",
        run: () => clearSelection(),
      },
    ],
    [store, copy],
  );
}

function hasTextSelection(): boolean {
  return (window.getSelection()?.toString() ?? "") !== "";
}

function useViewActions(): Action[] {
  const { zoomIn, zoomOut } = useReactFlow();
  return useMemo(() => {
    return [
      {
        id: "fit",
        label: "Show everything",
        keys: ["1"],
        section: "View",
        run: () => useViewport.getState().fit(),
      },
      {
        id: "zoomIn",
        label: "Zoom in",
        keys: ["+", "="],
        section: "View",
        run: () => void zoomIn({ duration: 120 }),
      },
      {
        id: "zoomOut",
        label: "Zoom out",
        keys: ["-"],
        section: "View",
        run: () => void zoomOut({ duration: 120 }),
      },
      {
        id: "overview",
        label: "Overview on or off",
        keys: ["m"],
        section: "View",
        run: () => setPreferences({ hasMinimap: !usePreferences.getState().hasMinimap }),
      },
      {
        id: "inspector",
        label: "Settings panel on or off",
        keys: ["]"],
        section: "View",
        run: () => setPreferences({ isInspectorOpen: !usePreferences.getState().isInspectorOpen }),
      },
      {
        id: "dock",
        label: "Lower panel on or off",
        keys: ["j"],
        section: "View",
        run: () => setPreferences({ isDockOpen: !usePreferences.getState().isDockOpen }),
      },
    ];
  }, [zoomIn, zoomOut]);
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
    const canEdit = () => !store.getState().isReadonly;
    const hasOne = () => canEdit() && useSelection.getState().nodes.length === 1;
    return [
      {
        id: "box",
        label: "Go to the selected node, or the first",
        keys: ["b"],
        section: "Go to",
        run: () => {
          const [id] = useSelection.getState().nodes;
          focus(`.react-flow__node${id ? `[data-id="${CSS.escape(id)}"]` : '[tabindex="0"]'}`);
        },
      },
      {
        id: "settings",
        label: "Go to the settings",
        keys: ["e"],
        section: "Go to",
        run: inSettings(FIELD),
      },
      {
        id: "rename",
        label: "Rename the node",
        keys: ["f2"],
        section: "Edit",
        isEnabled: hasOne,
        run: inSettings('[aria-label="Name of the node"]'),
      },
      {
        id: "connect",
        label: "Connect the node to another",
        keys: ["c"],
        section: "Edit",
        isEnabled: hasOne,
        run: inSettings('[aria-label="Connect to"]'),
      },
    ];
  }, [store]);
}

export function useLayoutActions(): Action[] {
  const { store } = useOpenLoop();
  const { align, distribute } = useAlign();
  const { arrangePools } = useArrange();
  const { canPlace, place, placeInNext } = usePlacing();
  const pools = useDocument((state) =>
    poolsOf(state.document)
      .map(({ name }) => name)
      .join(" "),
  );

  return useMemo(() => {
    const has = (least: number) => () =>
      !store.getState().isReadonly && useSelection.getState().nodes.length >= least;
    return [
      ...ALIGNMENTS.map(([by, label]) => ({
        id: `align-${by}`,
        label,
        keys: [],
        section: "Arrange",
        isEnabled: has(2),
        run: () => align(by, label),
      })),
      ...DISTRIBUTIONS.map(([along, label]) => ({
        id: `distribute-${along}`,
        label,
        keys: [],
        section: "Arrange",
        isEnabled: has(3),
        run: () => distribute(along, label),
      })),
      {
        id: "arrangePools",
        label: "Tidy by pools",
        keys: [],
        section: "Arrange",
        isEnabled: () =>
          !store.getState().isReadonly && poolsOf(store.getState().document).length > 0,
        run: arrangePools,
      },
      {
        id: "nextPool",
        label: "Place in the next pool",
        keys: ["p"],
        section: "Arrange",
        isEnabled: canPlace,
        run: placeInNext,
      },
      ...pools
        .split(" ")
        .filter(Boolean)
        .map((pool) => ({
          id: `pool-${pool}`,
          label: `Place in pool ${pool}`,
          keys: [],
          section: "Arrange",
          isEnabled: canPlace,
          run: () => place(pool),
        })),
      {
        id: "noPool",
        label: "Take out of the pool",
        keys: [],
        section: "Arrange",
        isEnabled: canPlace,
        run: () => place(null),
      },
    ];
  }, [store, align, distribute, canPlace, place, placeInNext, arrangePools, pools]);
}
