import { useMemo } from "react";
import type { Json, JsonObject } from "@/api/types";
import { isObject } from "@/lib/paths";
import { useCatalog, useDocument } from "@/state/document/context";
import { AlgorithmPage } from "./AlgorithmPage";

/** Every algorithm of a node, port by port, with the settings that it has now. */
export function NodePage({ node }: { node: string }) {
  const data = useDocument((state) => state.document.nodes[node]);
  const catalog = useCatalog();
  const inputs = catalog.kinds[data?.kind ?? ""]?.inputs;
  const found = useMemo(() => {
    const ports = inputs?.map((port) => port.name);
    return algorithmsOf(data as JsonObject | undefined, ports);
  }, [data, inputs]);
  const rollout = data?.rollout;
  if (found.length === 0) {
    return (
      <p className="text-muted text-sm">
        This node is not trained: it has no algorithm. Connect rewards, pairs, labels or
        demonstrations to it to see the formula of its loss here.
      </p>
    );
  }
  return (
    <div className="flex flex-col gap-8">
      {found.map(({ port, settings }, index) => (
        <AlgorithmPage
          key={`${port}.${index}`}
          port={port}
          settings={settings}
          rollout={isObject(rollout) ? rollout : null}
        />
      ))}
    </div>
  );
}

/** The algorithms of a node as they are written, whatever the form: one, by port, or several at a port. Pure. */
interface PortAlgorithm {
  /** Null in the short form, which serves whatever is connected. */
  port: string | null;
  settings: JsonObject;
}

/** In the order of the ports as the kind lists them. */
export function algorithmsOf(
  node: JsonObject | undefined,
  ports: readonly string[] = [],
): PortAlgorithm[] {
  const section = node?.algorithm;
  if (!isObject(section)) return [];
  if (typeof section.name === "string") return [{ port: null, settings: section }];
  const inOrder = Object.entries(section).toSorted(
    ([a], [b]) => ports.indexOf(a) - ports.indexOf(b),
  );
  return inOrder.flatMap(([port, entry]) => listed(entry).map((settings) => ({ port, settings })));
}

function listed(entry: Json | undefined): JsonObject[] {
  const entries = Array.isArray(entry) ? entry : [entry];
  return entries.filter((one): one is JsonObject => isObject(one) && typeof one.name === "string");
}
