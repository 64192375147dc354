import { useMemo, useRef, useState } from "react";
import type { Catalog, ModeInfo } from "@/api/types";
import { ofOtherModes } from "@/catalog/modes";
import { canConnect } from "@/document/canConnect";
import { portRef, portText } from "@/document/edges";
import type { Edge, LoopDocument } from "@/document/types";
import { connect } from "@/state/commands/edges";
import { useDocument, useMode, useOpenLoop } from "@/state/document/context";
import { Button } from "@/ui/Button";
import { Combobox } from "@/ui/Combobox";

export function ConnectTo({ node }: { node: string }) {
  const { catalog, store } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const list = useRef<HTMLButtonElement>(null);
  const [wish, setWish] = useState("");
  // Looked for when the list is opened: in a large loop there are many pairs of ports.
  const [isAsked, setAsked] = useState(false);
  const mode = useMode();
  const options = useMemo(() => {
    const edges = isAsked ? possibleEdges(catalog, document, node) : [];
    const isOther = ({ to }: Edge) => isOfOtherModes(mode, document, to);
    return edges
      .map((edge) => ({ edge, isOther: isOther(edge) }))
      .toSorted((a, b) => Number(a.isOther) - Number(b.isOther));
  }, [catalog, document, node, isAsked, mode]);
  const chosen = options.find(({ edge }) => edgeName(edge) === wish)?.edge;

  const add = () => {
    if (!chosen) return;
    store.dispatch(connect, { edge: chosen });
    setWish("");
    // The button is off now and cannot hold the focus.
    list.current?.focus();
  };
  return (
    <div className="mt-1 flex items-center gap-1">
      <span className="min-w-0 flex-1">
        <Combobox
          ref={list}
          label="Connect to"
          value={chosen ? wish : ""}
          options={[
            {
              value: "",
              label: isAsked && options.length === 0 ? "Nothing else fits" : "Connect to…",
              isUnset: true,
            },
            ...options.map(({ edge, isOther }) => ({
              value: edgeName(edge),
              label: edgeName(edge),
              help: isOther ? "Belongs to other modes." : undefined,
            })),
          ]}
          onOpen={() => setAsked(true)}
          onChange={setWish}
        />
      </span>
      <Button size="small" disabled={!chosen} onClick={add}>
        Connect
      </Button>
    </div>
  );
}

function edgeName(edge: Edge): string {
  return `${edge.from} → ${edge.to}`;
}

function isOfOtherModes(mode: ModeInfo, document: LoopDocument, to: string): boolean {
  const { node, port } = portRef(to);
  return ofOtherModes(mode, document.nodes[node]?.kind ?? "").ports.has(port);
}

function possibleEdges(catalog: Catalog, document: LoopDocument, node: string): Edge[] {
  const portsOf = (id: string, side: "inputs" | "outputs") =>
    (catalog.kinds[document.nodes[id]?.kind ?? ""]?.[side] ?? []).map((port) => ({
      node: id,
      port: port.name,
    }));
  const others = Object.keys(document.nodes).filter((id) => id !== node);
  const pairs = [
    ...portsOf(node, "outputs").flatMap((from) =>
      others.flatMap((id) => portsOf(id, "inputs").map((to) => ({ from, to }))),
    ),
    ...portsOf(node, "inputs").flatMap((to) =>
      others.flatMap((id) => portsOf(id, "outputs").map((from) => ({ from, to }))),
    ),
  ];
  return pairs
    .filter(({ from, to }) => canConnect(catalog, document, from, to).ok)
    .map(({ from, to }) => ({ from: portText(from), to: portText(to) }));
}
