import { useStoreApi } from "@xyflow/react";
import { type RefObject, useLayoutEffect } from "react";
import { useDetail } from "@/session/detail";
import { useMoving } from "./useMoves";

/** Tells styles by `--zoom` how small compact cards are drawn; what moves under a hand keeps what it had. */
export function useZoomProperty(frame: RefObject<HTMLElement | null>): void {
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
