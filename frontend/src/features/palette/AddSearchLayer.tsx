import { useAddSearch } from "@/session/addSearch";
import { AddSearch } from "./AddSearch";

/** The search that adds a node, over the canvas, while it is open. */
export function AddSearchLayer() {
  const request = useAddSearch((state) => state.request);
  if (!request) return null;
  return <AddSearch key={`${request.screen.x} ${request.screen.y}`} request={request} />;
}
