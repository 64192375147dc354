import { useQueryClient } from "@tanstack/react-query";
import { Ellipsis, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { deleteRun, renameRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { isFinal } from "@/live/reducer";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { Menu, MenuItem } from "@/ui/Menu";

/** What can be done with a run in a list: another name, or away with it. */
export function RunMenu({ run }: { run: RunSummary }) {
  const [asks, setAsks] = useState<"rename" | "delete" | null>(null);
  const [name, setName] = useState(run.name);
  const client = useQueryClient();
  const attempt = async (work: () => Promise<unknown>) => {
    setAsks(null);
    try {
      await work();
    } catch (error) {
      toast.error(errorMessage(error));
    }
    await client.invalidateQueries({ queryKey: ["runs"] });
  };
  return (
    <>
      <Menu
        align="end"
        trigger={
          <button
            type="button"
            aria-label={`More for ${run.name}`}
            className="inline-flex size-7 items-center justify-center rounded-1 text-muted hover:bg-hover hover:text-text"
          >
            <Ellipsis size={16} />
          </button>
        }
      >
        <MenuItem
          icon={<Pencil size={14} />}
          onSelect={() => {
            setName(run.name);
            setAsks("rename");
          }}
        >
          Rename…
        </MenuItem>
        <MenuItem
          icon={<Trash2 size={14} />}
          isDanger
          isDisabled={!isFinal(run.state)}
          onSelect={() => setAsks("delete")}
        >
          {isFinal(run.state) ? "Delete…" : "Stop it before deleting"}
        </MenuItem>
      </Menu>
      <Dialog title="Rename the run" isOpen={asks === "rename"} onClose={() => setAsks(null)}>
        <form
          className="flex items-center gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            void attempt(() => renameRun(run.id, name.trim()));
          }}
        >
          <input
            aria-label="Name of the run"
            className={WIDE_CONTROL}
            maxLength={200}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <Button type="submit" look="primary" disabled={name.trim() === ""}>
            Rename
          </Button>
        </form>
      </Dialog>
      <Dialog
        title={`Delete “${run.name}”?`}
        description="Its folder goes for good, with metrics, samples and checkpoints. Runs that were forked from it stay."
        isOpen={asks === "delete"}
        onClose={() => setAsks(null)}
        footer={
          <>
            <Button onClick={() => setAsks(null)}>Keep it</Button>
            <Button look="danger" onClick={() => void attempt(() => deleteRun(run.id))}>
              Delete
            </Button>
          </>
        }
      />
    </>
  );
}
