import { ReactFlow, SelectionMode, useReactFlow } from "@xyflow/react";
import { useMemo, useRef, useState } from "react";
import { useDocument, useOpenLoop } from "@/document/context";
import { GRID, NODE_WIDTH } from "@/document/geometry";
import { poolsOf } from "@/document/pools";
import { useAddSearch } from "@/session/addSearch";
import { toLoop, useDetail } from "@/session/detail";
import { usePreferences } from "@/session/preferences";
import { useSelection } from "@/session/selection";
import { NODE_DRAG, useAddNode } from "@/session/useAddNode";
import { CanvasEmpty } from "./CanvasEmpty";
import { CanvasGround } from "./CanvasGround";
import { CanvasTools } from "./CanvasTools";
import { ConnectionLine } from "./ConnectionLine";
import { FIRST_FIT } from "./fit";
import { Frames } from "./frames/Frames";
import { Guides } from "./guides/Guides";
import { useDragging } from "./guides/useDragging";
import { useNewHere } from "./guides/useNewHere";
import { Knife } from "./knife/Knife";
import { LearningLane } from "./LearningLane";
import { LoopEdge } from "./LoopEdge";
import { LoopNode } from "./LoopNode";
import { Notes } from "./notes/Notes";
import { useConnect } from "./useConnect";
import { useFit } from "./useFit";
import { useFlowEdges } from "./useFlowEdges";
import { useFlowNodes } from "./useFlowNodes";
import { useMoves } from "./useMoves";
import { useReveal } from "./useReveal";
import { useRoving } from "./useRoving";
import { useSockets } from "./useSockets";
import { useZoomProperty } from "./useZoomProperty";

const NODE_TYPES = { loop: LoopNode };
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
  const { nodes, onNodesChange, onDragStop } = useFlowNodes(dragging);
  const squeeze = useDetail((state) => state.squeeze);
  const { edges, onEdgesChange, boxes, drawing, dots, draw } = useFlowEdges(nodes, squeeze);
  const cards = useSockets(nodes, { sockets: drawing.sockets, dots }, squeeze);
  const connecting = useConnect();
  const snaps = usePreferences((state) => state.snapsToGrid);
  const showSearch = useAddSearch((state) => state.show);
  const { screenToFlowPosition } = useReactFlow();
  const add = useAddNode();
  const isFramed = useDocument(({ document }) => poolsOf(document).length > 0);
  const frame = useRef<HTMLDivElement>(null);
  const { onTouch, fit, onRest, onWheel } = useFit(frame, { boxes, draw, drawing, isFramed });
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

  const openSearch = (event: React.MouseEvent) => {
    const isPane =
      event.target instanceof Element && event.target.classList.contains("react-flow__pane");
    if (!isPane || store.getState().isReadonly) return;
    const screen = { x: event.clientX, y: event.clientY };
    showSearch({ screen, flow: toLoop(screenToFlowPosition(screen)) });
  };

  const drop = (event: React.DragEvent) => {
    const kind = catalog.kinds[event.dataTransfer.getData(NODE_DRAG)];
    if (!kind) return;
    event.preventDefault();
    onTouch();
    const at = toLoop(screenToFlowPosition({ x: event.clientX, y: event.clientY }));
    add({ kind, at: { x: at.x - NODE_WIDTH / 2, y: at.y - 24 }, ...newHere.take() });
  };

  return (
    <section
      {...roving}
      aria-label="Graph"
      className="relative isolate h-full w-full"
      onDoubleClick={openSearch}
      onDrop={drop}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(NODE_DRAG)) return;
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
            // A move that nobody made by hand is the fit itself; a press that moves nothing is none.
            if (event) onTouch();
            moves.onMove(event, view);
          }}
          onSelectionDragStop={onDragStop}
          onPaneClick={() => useSelection.getState().clear()}
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
          <Frames nodes={nodes} />
          <Notes />
          <Guides />
        </ReactFlow>
        <Knife />
        {nodes.length === 0 ? <CanvasEmpty /> : null}
      </div>
      <CanvasTools onFit={fit} onTouch={onTouch} area={drawing.area} />
    </section>
  );
}
