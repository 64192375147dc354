import { Fragment, useMemo } from "react";
import { useDocument, useOpenLoop } from "@/document/context";
import { kindOf } from "@/document/geometry";
import { formatName } from "@/lib/format";
import { KindIcon } from "@/ui/KindIcon";
import { BusyRing } from "./BusyRing";
import { CardText } from "./CardText";
import { summaryValues } from "./summary";

interface CardHeaderProps {
  node: string;
  isReachable: boolean;
}

/** Name, kind and model of a node, with its sign. */
export function CardHeader({ node, isReachable }: CardHeaderProps) {
  const { catalog, store, runId } = useOpenLoop();
  const data = useDocument((state) => state.document.nodes[node]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is what is read of the document
  const values = useMemo(
    () => summaryValues(catalog, store.getState().document, node),
    [catalog, store, node, data],
  );
  if (!data) return null;
  const kind = kindOf(catalog, data.kind);
  const title = kind?.title ?? formatName(data.kind);
  return (
    <header className="loop-node-header" title={kind?.help}>
      <span className="loop-node-icon">
        <KindIcon name={kind?.icon} />
        {runId ? <BusyRing node={node} /> : null}
      </span>
      <span className="min-w-0 flex-1">
        <span className="loop-node-name" title={node}>
          {node}
        </span>
        <span
          className="loop-node-kind"
          title={[title, ...values.map(({ text }) => text)].join(" · ")}
        >
          {title}
          {values.map((value) => (
            <Fragment key={value.text}>
              {" · "}
              {value.field && !runId ? (
                <CardText node={node} value={value} isReachable={isReachable} />
              ) : (
                value.text
              )}
            </Fragment>
          ))}
        </span>
      </span>
    </header>
  );
}
