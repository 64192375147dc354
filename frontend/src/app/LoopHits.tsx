import { Command } from "cmdk";
import { Workflow } from "lucide-react";
import { useLocation } from "wouter";
import { useOpenLoop } from "@/document/context";
import { hitAddress, useLoopSearch } from "@/session/useLoopSearch";
import { KindIcon } from "@/ui/KindIcon";

/** What is found is told from other items by this; the service says that it fits. */
export const HIT = "hit:";

interface LoopHitsProps {
  search: string;
  className: string;
  itemClass: string;
  onChosen: (act: () => void) => void;
}

/** Nodes and loops of the same words in the other saved loops. */
export function LoopHits({ search, className, itemClass, onChosen }: LoopHitsProps) {
  const { catalog, loopId } = useOpenLoop();
  const [, navigate] = useLocation();
  const { data = [] } = useLoopSearch(search);
  const others = data.filter(({ loop }) => loop !== loopId);
  if (others.length === 0) return null;
  return (
    <Command.Group heading="In other loops" className={className}>
      {others.map(({ loop, loop_name: name, node, kind, model }) => (
        <Command.Item
          key={`${loop} ${node}`}
          value={`${HIT}${loop} ${node ?? ""}`}
          className={itemClass}
          onSelect={() => onChosen(() => navigate(hitAddress(loop, node)))}
        >
          {node === null ? (
            <Workflow size={14} />
          ) : (
            <KindIcon name={catalog.kinds[kind ?? ""]?.icon} size={14} />
          )}
          <span className="min-w-0 flex-1 truncate">
            {node ?? name}
            {model ? <span className="text-muted"> · {model}</span> : null}
          </span>
          <span className="max-w-1/2 truncate text-faint text-xs">
            {node === null ? "loop" : name}
          </span>
        </Command.Item>
      ))}
    </Command.Group>
  );
}
