import { useCallback } from "react";
import type { KindInfo } from "@/api/types";
import { beginNode } from "@/document/beginNode";
import { addNode } from "@/document/commands/addNode";
import { useOpenLoop } from "@/document/context";
import { portText } from "@/document/edges";
import { fittingPort } from "@/document/fittingPort";
import { freePlace } from "@/document/freePlace";
import { freeName } from "@/document/names";
import type { PortRef } from "@/document/types";
import { useMode } from "@/document/useMode";
import { useViewport } from "@/session/viewport";
import { useSelection } from "./selection";

/** What a drag from the palette carries: the name of a kind. */
export const NODE_DRAG = "application/x-coloop-node";

interface AddOptions {
  kind: KindInfo;
  at: { x: number; y: number };
  from?: (PortRef & { isOutput: boolean }) | undefined;
}

/** Adds a node as the mode begins one of its kind, connects it where it came from a port, and selects it. */
export function useAddNode(): (options: AddOptions) => string {
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  return useCallback(
    ({ kind, at, from }) => {
      const { document, dispatch } = store.getState();
      const id = freeName(kind.kind, new Set(Object.keys(document.nodes)));
      const data = beginNode(catalog, document, kind, mode);
      const place = freePlace(catalog, document, kind, at);
      const port = from ? fittingPort(catalog, document, from, kind) : null;
      const edges = [];
      if (from && port) {
        const own = portText({ node: id, port });
        const other = portText(from);
        edges.push(from.isOutput ? { from: other, to: own } : { from: own, to: other });
      }
      dispatch(
        addNode,
        {
          id,
          data,
          position: [place.x, place.y],
          edges,
        },
        { label: `Add ${kind.title.toLowerCase()}` },
      );
      useSelection.getState().select({ nodes: [id] });
      useViewport.getState().reveal(id);
      return id;
    },
    [catalog, store, mode],
  );
}
