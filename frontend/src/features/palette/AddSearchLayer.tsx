import { lazy, Suspense, useEffect } from "react";
import { useAddSearch } from "@/session/addSearch";

const load = () => import("./AddSearch");
const AddSearch = lazy(() => load().then((module) => ({ default: module.AddSearch })));

/**
 * The search that adds a node, over the canvas, while one is asked for. It is fetched once the page is
 * idle, so that what is typed after its key goes into it.
 */
export function AddSearchLayer() {
  const request = useAddSearch((state) => state.request);
  useEffect(() => {
    const timer = setTimeout(() => void load(), 500);
    return () => clearTimeout(timer);
  }, []);
  if (!request) return null;
  return (
    <Suspense>
      <AddSearch key={`${request.screen.x} ${request.screen.y}`} request={request} />
    </Suspense>
  );
}
