import {
  Ellipsis,
  GitCompareArrows,
  GitFork,
  Pencil,
  RotateCcw,
  RotateCw,
  Square,
  Tag,
  Trash2,
} from "lucide-react";
import { type FormEvent, useId, useState } from "react";
import { useLocation } from "wouter";
import { changeRun, stopRun } from "@/api/routes";
import type { Bodies, RunSummary } from "@/api/types";
import { ForkDialog } from "@/features/runs/start/ForkDialog";
import { resumeFrom, runAgain, useStartRun } from "@/features/runs/start/TrustDialog";
import { isFinal } from "@/live/reducer";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { Menu, MenuItem, MenuSeparator } from "@/ui/Menu";
import { DeleteRunDialog } from "./ChosenBar";

interface RunMenuProps {
  run: RunSummary;
  tags?: readonly string[];
  other?: RunSummary | undefined;
}

export function RunMenu({ run, tags = [], other }: RunMenuProps) {
  const [asks, setAsks] = useState<"rename" | "delete" | "tags" | "fork" | null>(null);
  const [, navigate] = useLocation();
  const { attempt, start } = useStartRun();
  const isOver = isFinal(run.state);
  const close = () => setAsks(null);
  return (
    <>
      <Menu align="end" trigger={<More name={run.name} />}>
        <MenuItem icon={<RotateCcw size={14} />} onSelect={() => start(() => runAgain(run))}>
          Run again
        </MenuItem>
        <MenuItem icon={<GitFork size={14} />} onSelect={() => setAsks("fork")}>
          Fork from a checkpoint…
        </MenuItem>
        {isOver && run.state !== "finished" ? (
          <MenuItem icon={<RotateCw size={14} />} onSelect={() => start(() => resumeFrom(run))}>
            Resume
          </MenuItem>
        ) : null}
        {isOver ? null : (
          <MenuItem
            icon={<Square size={14} />}
            isDisabled={run.state === "stopping"}
            onSelect={() => void attempt(() => stopRun(run.id))}
          >
            {STOP[run.state] ?? "Stop"}
          </MenuItem>
        )}
        {other ? (
          <MenuItem
            icon={<GitCompareArrows size={14} />}
            onSelect={() => navigate(`/runs/compare?runs=${other.id},${run.id}`)}
          >
            Compare with {other.name}
          </MenuItem>
        ) : null}
        <MenuSeparator />
        <MenuItem icon={<Pencil size={14} />} onSelect={() => setAsks("rename")}>
          Rename…
        </MenuItem>
        <MenuItem icon={<Tag size={14} />} onSelect={() => setAsks("tags")}>
          Tags…
        </MenuItem>
        <MenuItem
          icon={<Trash2 size={14} />}
          isDanger
          isDisabled={!isOver}
          onSelect={() => setAsks("delete")}
        >
          {isOver ? "Delete…" : "Stop it before deleting"}
        </MenuItem>
      </Menu>
      {asks === "fork" ? <ForkDialog run={run} isOpen onClose={close} /> : null}
      {asks === "rename" ? <RenameRunDialog run={run} onClose={close} /> : null}
      {asks === "tags" ? <TagsDialog run={run} known={tags} onClose={close} /> : null}
      {asks === "delete" ? <DeleteRunDialog runs={[run]} onClose={close} /> : null}
    </>
  );
}

const STOP: Partial<Record<RunSummary["state"], string>> = {
  queued: "Remove it from the queue",
  stopping: "It is stopping",
};

function More({ name, ...rest }: { name: string }) {
  return (
    <button
      type="button"
      aria-label={`More for ${name}`}
      className="inline-flex size-7 items-center justify-center rounded-1 text-muted hover:bg-hover hover:text-text"
      {...rest}
    >
      <Ellipsis size={16} />
    </button>
  );
}

/** Closes the dialog of a form and changes the run. */
function useChange(run: RunSummary, onClose: () => void) {
  const { attempt } = useAttempt("runs");
  return (event: FormEvent, change: Bodies["ChangeRun"]) => {
    event.preventDefault();
    onClose();
    void attempt(() => changeRun(run.id, change));
  };
}

function RenameRunDialog({ run, onClose }: { run: RunSummary; onClose: () => void }) {
  const [name, setName] = useState(run.name);
  const change = useChange(run, onClose);
  return (
    <Dialog title="Rename the run" isOpen onClose={onClose}>
      <form
        className="flex items-center gap-2"
        onSubmit={(event) => change(event, { name: name.trim() })}
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
  );
}

interface TagsDialogProps {
  run: RunSummary;
  known: readonly string[];
  onClose: () => void;
}

function TagsDialog({ run, known, onClose }: TagsDialogProps) {
  const [text, setText] = useState(run.tags.join(", "));
  const change = useChange(run, onClose);
  const id = useId();
  const free = known.filter((tag) => !tagsIn(text).includes(tag));
  return (
    <Dialog title={`Tags of “${run.name}”`} isOpen onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => change(event, { tags: tagsIn(text) })}
      >
        <label className="flex flex-col gap-1 text-muted text-xs" htmlFor={id}>
          Separated by commas
          <input
            id={id}
            className={WIDE_CONTROL}
            maxLength={400}
            placeholder="baseline, lr 1e-4"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        {free.length > 0 ? (
          <fieldset className="flex flex-wrap gap-1">
            <legend className="mb-1 text-muted text-xs">Tags of other runs</legend>
            {free.slice(0, 24).map((tag) => (
              <Button
                key={tag}
                size="small"
                onClick={() => setText([...tagsIn(text), tag].join(", "))}
              >
                + {tag}
              </Button>
            ))}
          </fieldset>
        ) : null}
        <div className="flex justify-end">
          <Button type="submit" look="primary">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function tagsIn(text: string): string[] {
  const words = text.split(",").map((word) => word.trim().toLowerCase());
  return [...new Set(words.filter((word) => word !== ""))];
}
