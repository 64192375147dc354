import { CircleHelp } from "lucide-react";
import type { Estimate } from "@/api/types";
import { isOnCpu } from "@/document/pools";
import { heaviestMoment } from "@/lib/estimate";
import { formatBytes, formatCount } from "@/lib/format";
import { useDocument, useSync } from "@/state/document/context";
import { RichText } from "@/ui/RichText";

/** Parameters of a node's model, and the memory that the node takes; why both are not known of one that is not. */
export function ModelSize({ node }: { node: string }) {
  const estimate = useSync((state) => state.check?.estimate ?? null);
  const each = useDocument((state) => (isOnCpu(state.document) ? "a process" : "a GPU"));
  if (!estimate) return null;
  const unknown = estimate.unknown.find((one) => one.nodes.includes(node));
  if (unknown) return <NotKnown unknown={unknown} />;
  const count = estimate.parameters[node];
  const moment = heaviestMoment(estimate, node);
  if (count === undefined && moment === null) return null;
  return (
    <p className="tabular py-1 text-muted text-xs">
      {count === undefined ? "Weights of another node" : `${formatCount(count)} parameters`}
      {moment ? (
        <>
          ; takes up to {formatBytes(moment.bytes)} of {each} of {moment.pool}, in {moment.stage}
        </>
      ) : null}
    </p>
  );
}

function NotKnown({ unknown }: { unknown: Estimate["unknown"][number] }) {
  const near = unknown.suggestions.map((name) => `\`${name}\``).join(" or ");
  return (
    <p role="note" className="flex items-start gap-1.5 py-1 text-warning text-xs">
      <CircleHelp size={13} className="mt-0.5 shrink-0" aria-hidden="true" />
      <span>
        <RichText text={`No parameters, memory or times: ${unknown.reason}.`} />
        {near ? <RichText text={` Did you mean ${near}?`} /> : null}
      </span>
    </p>
  );
}
