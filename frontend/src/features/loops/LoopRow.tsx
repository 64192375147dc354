import { useQueryClient } from "@tanstack/react-query";
import { Copy, Trash2, Workflow } from "lucide-react";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import * as routes from "@/api/routes";
import type { LoopSummary } from "@/api/types";
import { copyLoop } from "@/state/sync/newLoops";
import { useAttempt } from "@/state/useAttempt";
import { closeLoop } from "@/state/useOpenedLoop";
import { Ago } from "@/ui/Ago";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { IconButton } from "@/ui/IconButton";

export function LoopRow({ loop }: { loop: LoopSummary }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);

  const { attempt } = useAttempt("loops");
  const duplicate = async () => {
    const { yaml } = await routes.fetchLoop(loop.id);
    const copy = await copyLoop(yaml, `${loop.name}-copy`, routes);
    navigate(`/loops/${copy.id}`);
  };
  return (
    <li className="group flex items-center gap-3 border-line border-b px-4 py-2 last:border-b-0 hover:bg-hover">
      <Workflow size={16} className="shrink-0 text-muted" aria-hidden="true" />
      <Link
        href={`/loops/${loop.id}`}
        className="min-w-0 flex-1 truncate font-medium text-sm"
        title={loop.name}
      >
        {loop.name}
      </Link>
      <span className="tabular shrink-0 text-muted text-xs" title={`Version ${loop.version}`}>
        <Ago at={loop.updated_at} />
      </span>
      <span className="flex opacity-0 focus-within:opacity-100 group-hover:opacity-100">
        <IconButton
          label={`Duplicate ${loop.name}`}
          size="small"
          onClick={() => void attempt(duplicate)}
          icon={<Copy size={14} />}
        />
        <IconButton
          label={`Delete ${loop.name}`}
          size="small"
          onClick={() => setAsking(true)}
          icon={<Trash2 size={14} />}
        />
      </span>
      <Dialog
        title={`Delete “${loop.name}”?`}
        description="The loop and its versions are deleted. Its runs are kept."
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        footer={
          <>
            <Button onClick={() => setAsking(false)}>Keep it</Button>
            <Button
              look="danger"
              onClick={() => {
                setAsking(false);
                void attempt(async () => {
                  await routes.deleteLoop(loop.id);
                  closeLoop(client, loop.id);
                });
              }}
            >
              Delete
            </Button>
          </>
        }
      />
    </li>
  );
}
