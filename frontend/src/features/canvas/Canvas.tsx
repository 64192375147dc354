import {
  ReactFlow,
  SelectionMode,
  useReactFlow,
  useStore,
  useStoreApi,
  ViewportPortal,
} from "@xyflow/react";
import { GraduationCap } from "lucide-react";
import {
  lazy,
  type RefObject,
  Suspense,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { poolsOf } from "@/document/pools";
import { poolAt } from "@/graph/frames";
import { boxesOf, GRID, NODE_WIDTH } from "@/graph/geometry";
import type { Drawing } from "@/graph/routes";
import { isTyping } from "@/state/actions";
import {
  aimAt,
  clearDropTarget,
  toLoop,
  useDetail,
  useDropTarget,
  useFileTaker,
} from "@/state/canvas";
import { showAddSearch, showDialog } from "@/state/dialogs";
import { useDocument, useMode, useOpenLoop } from "@/state/document/context";
import { usePreferences } from "@/state/preferences";
import { useBlocks } from "@/state/queries";
import { clearSelection, select, useSelection } from "@/state/selection";
import { BLOCK_DRAG, NODE_DRAG, useAddNode } from "@/state/useAddNode";
import { useFold } from "@/state/useGroups";
import { Button } from "@/ui/Button";
import { CanvasTools } from "./CanvasTools";
import { ConnectionLine } from "./ConnectionLine";
import { EdgeCutter } from "./EdgeCutter";
import { FIRST_FIT } from "./fit";
import { GroupCard } from "./GroupCard";
import { edgeUnder, useDragging } from "./guides/useDragging";
import { LightBar } from "./LightBar";
import { LoopEdge } from "./LoopEdge";
import { LoopNode } from "./LoopNode";
import { useConnect } from "./useConnect";
import { useFit } from "./useFit";
import { useFlowEdges } from "./useFlowEdges";
import { useFlowNodes } from "./useFlowNodes";
import { useMoves, useMoving } from "./useMoves";
import { useReveal } from "./useReveal";
import { useRoving } from "./useRoving";
import { useSockets } from "./useSockets";

const CanvasMenu = lazy(() =>
  import("./CanvasMenu").then((module) => ({ default: module.CanvasMenu })),
);

const Frames = lazy(() => import("./frames/Frames").then((module) => ({ default: module.Frames })));
const NoteCard = lazy(() =>
  import("./notes/NoteCard").then((module) => ({ default: module.NoteCard })),
);

const GroupFrames = lazy(() =>
  import("./frames/GroupFrames").then((module) => ({ default: module.GroupFrames })),
);

const NODE_TYPES = { loop: LoopNode, group: GroupCard };
const EDGE_TYPES = { loop: LoopEdge };
const HOW_TO_GET_ABOUT = {
  "node.a11yDescription.default":
    "Arrow keys go to other nodes, Shift and left or right to an edge of this one. Enter selects it; arrow keys then move it, Escape deselects it.",
  "edge.a11yDescription.default":
    "Left and right go to the ends of this edge, up and down to the edges beside it. Enter selects it.",
};

/** The graph. It shows the document and turns gestures into commands; it holds nothing itself. */
export function Canvas() {
  const { catalog, store } = useOpenLoop();
  const dragging = useDragging();
  const { nodes, isDragging, onNodesChange, onDragStop } = useFlowNodes(dragging);
  const squeeze = useDetail((state) => state.squeeze);
  const { edges, onEdgesChange, boxes, drawing, dots, draw } = useFlowEdges(
    nodes,
    squeeze,
    isDragging,
  );
  const cards = useSockets(nodes, { sockets: drawing.sockets, dots }, squeeze);
  const connecting = useConnect();
  const snaps = usePreferences((state) => state.snapsToGrid);
  const { screenToFlowPosition } = useReactFlow();
  const add = useAddNode();
  const blocks = useBlocks();
  const isFramed = useDocument(({ document }) => poolsOf(document).length > 0);
  const hasGroups = useDocument(({ document }) => document.groups !== undefined);
  const { cards: closed } = useFold();
  const membersAt = (id: string) => closed.find((card) => card.id === id)?.members ?? [id];
  const frame = useRef<HTMLDivElement>(null);
  const { onTouch, fit, onRest, onWheel } = useFit(frame, {
    boxes,
    draw,
    drawing,
    isFramed: isFramed || hasGroups,
  });
  const moves = useMoves(frame, onRest);
  useZoomProperty(frame);
  const snap = useMemo((): [number, number] => {
    return squeeze ? [GRID * squeeze.x, GRID * squeeze.y] : [GRID, GRID];
  }, [squeeze]);
  // An empty canvas is not fitted to the first box: that stays where it was put.
  const [fitsAtFirst] = useState(nodes.length > 0);
  const roving = useRoving();
  const newHere = useNewHere();
  useReveal();
  useTakeFiles();

  const addAt = (screen: { x: number; y: number }) =>
    showAddSearch({ screen, flow: toLoop(screenToFlowPosition(screen)) });
  const openSearch = (event: React.MouseEvent) => {
    const isPane =
      event.target instanceof Element && event.target.classList.contains("react-flow__pane");
    if (!isPane || store.getState().isReadonly) return;
    addAt({ x: event.clientX, y: event.clientY });
  };

  const [menuAt, setMenuAt] = useState<{ x: number; y: number } | null>(null);
  const openMenu = (event: React.MouseEvent) => {
    const target = event.target as Element;
    if (isTyping(target)) return;
    event.preventDefault();
    const node = target.closest<HTMLElement>(".react-flow__node")?.dataset.id;
    if (node === undefined) clearSelection();
    else if (!membersAt(node).every((id) => useSelection.getState().nodes.includes(id)))
      select({ nodes: membersAt(node) });
    setMenuAt({ x: event.clientX, y: event.clientY });
  };

  const drop = (event: React.DragEvent) => {
    const block = blocks.find(({ id }) => id === event.dataTransfer.getData(BLOCK_DRAG));
    if (block) {
      event.preventDefault();
      clearDropTarget();
      onTouch();
      const at = toLoop(screenToFlowPosition({ x: event.clientX, y: event.clientY }));
      void import("@/state/addBlock").then(({ addBlock }) =>
        addBlock({ catalog, store }, { block, at: { x: at.x - NODE_WIDTH / 2, y: at.y - 24 } }),
      );
      return;
    }
    const kind = catalog.kinds[event.dataTransfer.getData(NODE_DRAG)];
    if (!kind) return;
    event.preventDefault();
    onTouch();
    const at = toLoop(screenToFlowPosition({ x: event.clientX, y: event.clientY }));
    void add({ kind, at: { x: at.x - NODE_WIDTH / 2, y: at.y - 24 }, ...newHere.take() });
  };

  return (
    <section
      {...roving}
      aria-label="Graph"
      className="relative isolate h-full w-full"
      onDoubleClick={openSearch}
      onContextMenu={openMenu}
      onDrop={drop}
      onDragOver={(event) => {
        const { types } = event.dataTransfer;
        if (!types.includes(NODE_DRAG) && !types.includes(BLOCK_DRAG)) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
        newHere.aim(event);
      }}
    >
      <div
        ref={frame}
        className="relative h-full"
        data-detail={squeeze ? "compact" : "whole"}
        onWheelCapture={onWheel}
      >
        <ReactFlow
          nodes={cards}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={onNodesChange}
          onEdgesChange={onEdgesChange}
          onNodeDragStop={onDragStop}
          {...moves}
          onMove={(event, view) => {
            if (event) onTouch();
            moves.onMove(event, view);
          }}
          onSelectionDragStop={onDragStop}
          onNodeClick={(event, { id }) => selectOnly(event, membersAt(id))}
          onPaneClick={() => clearSelection()}
          {...connecting}
          connectionLineComponent={ConnectionLine}
          connectionRadius={squeeze ? 16 / squeeze.zoom : 26}
          snapToGrid={snaps}
          snapGrid={snap}
          fitView={fitsAtFirst}
          fitViewOptions={FIRST_FIT}
          minZoom={0.02}
          maxZoom={2}
          selectionMode={SelectionMode.Partial}
          multiSelectionKeyCode={["Shift", "Meta", "Control"]}
          deleteKeyCode={null}
          zoomOnDoubleClick={false}
          panOnScroll
          attributionPosition="bottom-right"
          ariaLabelConfig={HOW_TO_GET_ABOUT}
        >
          <CanvasGround />
          <LearningLane drawing={drawing} />
          <Suspense>{isFramed ? <Frames nodes={nodes} /> : null}</Suspense>
          <Suspense>{hasGroups ? <GroupFrames nodes={nodes} /> : null}</Suspense>
          <Notes />
          <Guides />
        </ReactFlow>
        <EdgeCutter />
        {nodes.length === 0 ? <CanvasEmpty /> : null}
      </div>
      <Suspense>
        {menuAt ? <CanvasMenu at={menuAt} onAdd={addAt} onClose={() => setMenuAt(null)} /> : null}
      </Suspense>
      <LightBar />
      <CanvasTools onFit={fit} onTouch={onTouch} area={drawing.area} />
    </section>
  );
}

function Notes() {
  const notes = useDocument((state) => state.document.notes);
  if (!notes) return null;
  return (
    <ViewportPortal>
      <Suspense>
        {Object.entries(notes).map(([id, note]) => (
          <NoteCard key={id} id={id} note={note} />
        ))}
      </Suspense>
    </ViewportPortal>
  );
}

/** Tells styles by `--zoom` how small compact cards are drawn; what moves under a hand keeps what it had. */
function useZoomProperty(frame: RefObject<HTMLElement | null>): void {
  const flow = useStoreApi();
  useLayoutEffect(() => {
    let told = 0;
    const tell = () => {
      const zoom = flow.getState().transform[2];
      const { squeeze } = useDetail.getState();
      if (squeeze === null || useMoving.getState().isMoving || zoom === told) return;
      told = zoom;
      frame.current?.style.setProperty("--zoom", String(zoom));
    };
    tell();
    const leave = [flow.subscribe(tell), useMoving.subscribe(tell), useDetail.subscribe(tell)];
    return () => {
      for (const one of leave) one();
    };
  }, [frame, flow]);
}

export function CanvasEmpty() {
  const mode = useMode();
  return (
    <div className="pointer-events-none absolute inset-0 flex items-center justify-center p-2">
      <div className="pointer-events-auto flex max-h-full max-w-md flex-col items-center gap-2 overflow-y-auto rounded-3 border border-line bg-surface p-5 text-center shadow-2">
        <p className="font-semibold text-base">An empty loop</p>
        <p className="text-sm">
          <b className="font-medium">{mode.title}.</b> {mode.help}
        </p>
        <p className="text-muted text-sm">
          Drag a block or a node from the left, double-click the canvas to search, or start from a
          preset.
        </p>
        <Button look="primary" className="mt-1" onClick={() => showDialog("gallery")}>
          Open the gallery
        </Button>
      </div>
    </div>
  );
}

/** A press on one of several selected nodes selects it alone; React Flow keeps them all. */
function selectOnly(event: React.MouseEvent, nodes: readonly string[]): void {
  if (event.shiftKey || event.metaKey || event.ctrlKey) return;
  if (useSelection.getState().nodes.length > nodes.length) select({ nodes });
}

const BEYOND = 3000;

function LearningLane({ drawing: { laneTop, area } }: { drawing: Drawing }) {
  if (laneTop === null || area === null) return null;
  const width = area.right - area.left + 2 * BEYOND;
  return (
    <ViewportPortal>
      <div
        className="pointer-events-none absolute -z-1 border-line-strong border-t border-dashed bg-surface/55 pt-2 compact:border-t-[calc(1px*var(--unzoom))] compact:pt-[calc(4px*var(--unzoom))]"
        style={{
          transform: `translate(${area.left - BEYOND}px, ${laneTop}px)`,
          width,
          height: area.bottom - laneTop + BEYOND,
          paddingLeft: BEYOND + 12,
        }}
      >
        <span className="inline-flex items-center gap-[5px] font-medium text-faint text-xs compact:gap-[calc(4px*var(--unzoom))] compact:text-[calc(11px*var(--unzoom))]/[calc(14px*var(--unzoom))]">
          <GraduationCap
            size={14}
            className="compact:size-[calc(12px*var(--unzoom))]"
            aria-hidden="true"
          />{" "}
          Learning
        </span>
      </div>
    </ViewportPortal>
  );
}

const SMALLEST_GAP = 14;
/** How far it goes from where the graph begins: a whole number of all gaps. */
const REACH = GRID * 4096;

/**
 * The ground of the graph, with dots that stay apart and equally fine at every zoom. It moves with the graph, so that
 * both are one picture; as it hides all behind it, so can the browser keep boxes and ground in one layer.
 */
export function CanvasGround() {
  const isMoving = useMoving((state) => state.isMoving);
  const drawnAt = useRef<number | null>(null);
  const zoom = useStore(({ transform }) => (isMoving && drawnAt.current) || transform[2]);
  drawnAt.current = zoom;
  let gap = GRID;
  while (gap * zoom < SMALLEST_GAP) gap *= 2;
  return (
    <ViewportPortal>
      <div
        aria-hidden="true"
        className="canvas-ground pointer-events-none absolute -z-3 bg-canvas"
        style={{
          inset: -REACH,
          backgroundImage: `radial-gradient(circle, var(--canvas-dot) ${1 / zoom}px, transparent ${1.2 / zoom}px)`,
          backgroundSize: `${gap}px ${gap}px`,
          backgroundPosition: `${-gap / 2}px ${-gap / 2}px`,
        }}
      />
    </ViewportPortal>
  );
}

function Guides() {
  const guides = useDropTarget((state) => state.guides);
  const edge = useDropTarget((state) => state.edge);
  const by = useDetail((state) => state.squeeze) ?? { x: 1, y: 1 };
  const zoom = useStore((state) => state.transform[2]);
  useEffect(() => {
    const found =
      edge && document.querySelector(`.react-flow__edge[data-id="${CSS.escape(edge)}"]`);
    if (!found) return;
    found.setAttribute("data-target", "");
    return () => found.removeAttribute("data-target");
  }, [edge]);
  if (guides.length === 0) return null;
  return (
    <ViewportPortal>
      <svg
        className="canvas-guides pointer-events-none absolute overflow-visible stroke-accent"
        aria-hidden="true"
        role="presentation"
      >
        {guides.map(({ axis, at, from, to }) => (
          <line
            key={`${axis} ${at}`}
            strokeWidth={1 / zoom}
            {...(axis === "x"
              ? { x1: at * by.x, x2: at * by.x, y1: from * by.y, y2: to * by.y }
              : { x1: from * by.x, x2: to * by.x, y1: at * by.y, y2: at * by.y })}
          />
        ))}
      </svg>
    </ViewportPortal>
  );
}

/** Data files that are dropped on the graph are new datasets, or the rows of the dataset that they are dropped on. */
function useTakeFiles(): void {
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  const { screenToFlowPosition } = useReactFlow();
  const isReadonly = useDocument((state) => state.isReadonly);
  useEffect(() => {
    if (isReadonly) return;
    const take = async (files: readonly File[], screen: { x: number; y: number }) => {
      const over = document.elementFromPoint(screen.x, screen.y);
      const isOnGraph = over?.closest(".react-flow") !== null;
      const pointed = over?.closest<HTMLElement>(".react-flow__node")?.dataset.id;
      const point = toLoop(screenToFlowPosition(screen));
      const at = isOnGraph ? { x: point.x - NODE_WIDTH / 2, y: point.y - 24 } : undefined;
      const { addFile, chosenDataset } = await import("@/state/addData");
      const node = isOnGraph ? pointed : chosenDataset(catalog, store.getState().document);
      for (const file of files) await addFile({ catalog, store, mode }, file, { node, at });
    };
    useFileTaker.setState({ take: (files, at) => void take(files, at) });
    return () => useFileTaker.setState({ take: null });
  }, [catalog, store, mode, screenToFlowPosition, isReadonly]);
}

/** Where a node that is dragged from the list would be put, besides its place: in an edge, or in a pool. */
function useNewHere() {
  const { catalog, store } = useOpenLoop();
  const { screenToFlowPosition } = useReactFlow();
  return useMemo(
    () => ({
      aim: ({ clientX: x, clientY: y }: { clientX: number; clientY: number }) => {
        const { kind } = useDropTarget.getState();
        if (kind === null) return;
        const { document } = store.getState();
        const edge = edgeUnder(catalog, document, { x, y }, kind);
        const point = toLoop(screenToFlowPosition({ x, y }));
        const name = poolAt(catalog, document, boxesOf(catalog, document), kind, point);
        aimAt({ edge, pool: name === null ? null : { name, isLeft: false } });
      },
      take: () => {
        const { edge, pool } = useDropTarget.getState();
        clearDropTarget();
        return { edge, pool: pool?.name };
      },
    }),
    [catalog, store, screenToFlowPosition],
  );
}
