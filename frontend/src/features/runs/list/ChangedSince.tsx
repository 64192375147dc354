import { Popover } from "radix-ui";
import { useState } from "react";
import type { RunSummary } from "@/api/types";
import { Failed, Loading } from "@/ui/States";
import { ChangeList, useLoopChanges } from "../start/ForkChanges";

interface ChangedSinceProps {
  run: Pick<RunSummary, "id" | "name" | "loop_id">;
  label: string;
}

export function ChangedSince({ run, label }: ChangedSinceProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover.Root open={isOpen} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <button
          type="button"
          title="What was changed in the loop since this run"
          className="shrink-0 whitespace-nowrap rounded-full bg-warning-soft px-2 text-warning text-xs leading-5 hover:underline"
        >
          {label}
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          sideOffset={6}
          collisionPadding={8}
          aria-label={`Changed since ${run.name}`}
          className="z-50 flex max-h-[min(60vh,var(--radix-popover-content-available-height))] w-96 max-w-[calc(100vw-16px)] flex-col gap-2 overflow-y-auto rounded-2 border border-line bg-raised p-3 text-sm shadow-3"
        >
          <p className="font-medium">From this run to the loop as it is now</p>
          <Changes run={run} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Changes({ run }: Pick<ChangedSinceProps, "run">) {
  const { data, error } = useLoopChanges(run.id, run.loop_id);
  if (error) return <Failed title="The loop could not be compared" error={error} />;
  if (!data) return <Loading label="Comparing the loops" rows={2} />;
  if (data.changes.length === 0) {
    return <p className="text-muted">The saved loop has no change that affects a run.</p>;
  }
  return <ChangeList label="What was changed" changes={data.changes} />;
}
