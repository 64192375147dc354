import { useMemo } from "react";
import type { JsonObject } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { isObject } from "@/lib/paths";
import { AlgorithmPage } from "./AlgorithmPage";
import { algorithmsOf } from "./algorithmsOf";

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
