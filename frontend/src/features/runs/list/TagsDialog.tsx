import { useId, useState } from "react";
import { changeRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { useRunWork } from "./useRunWork";

interface TagsDialogProps {
  run: RunSummary;
  /** Tags that other runs have. */
  known: readonly string[];
  isOpen: boolean;
  onClose: () => void;
}

/** The tags of a run, as words between commas. */
export function TagsDialog({ run, known, isOpen, onClose }: TagsDialogProps) {
  const [text, setText] = useState(run.tags.join(", "));
  const { attempt } = useRunWork();
  const id = useId();
  const save = () => {
    onClose();
    void attempt(() => changeRun(run.id, { tags: tagsIn(text) }));
  };
  const free = known.filter((tag) => !tagsIn(text).includes(tag));
  return (
    <Dialog title={`Tags of “${run.name}”`} isOpen={isOpen} onClose={onClose}>
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
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
