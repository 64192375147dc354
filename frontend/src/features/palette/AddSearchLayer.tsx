import { lazy, Suspense } from "react";
import { useAddSearch } from "@/session/addSearch";

const AddSearch = lazy(() =>
  import("./AddSearch").then((module) => ({ default: module.AddSearch })),
);

/** The search that adds a node, over the canvas, while one is asked for. */
export function AddSearchLayer() {
  const request = useAddSearch((state) => state.request);
  if (!request) return null;
  return (
    <Suspense>
      <AddSearch key={`${request.screen.x} ${request.screen.y}`} request={request} />
    </Suspense>
  );
}
