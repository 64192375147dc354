import { useState } from "react";
import { changeRun } from "@/api/routes";
import type { RunSummary } from "@/api/types";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { useRunWork } from "./useRunWork";

export function RenameRunDialog({ run, onClose }: { run: RunSummary; onClose: () => void }) {
  const [name, setName] = useState(run.name);
  const { attempt } = useRunWork();
  return (
    <Dialog title="Rename the run" isOpen onClose={onClose}>
      <form
        className="flex items-center gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          onClose();
          void attempt(() => changeRun(run.id, { name: name.trim() }));
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
  );
}
