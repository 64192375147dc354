import { type FormEvent, useId, useState } from "react";
import { toBlock } from "@/document/blocks";
import { formatPlural } from "@/lib/format";
import { showDialog, useDialogs } from "@/state/dialogs";
import { useOpenLoop } from "@/state/document/context";
import { useSelection } from "@/state/selection";
import { useSaveBlock } from "@/state/useBlocks";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";

const MAX_TITLE = 80;
const MAX_DESCRIPTION = 2000;

/** Saves the selected nodes as a block, which every loop of this server can be given. */
export function SaveBlockDialog() {
  const isOpen = useDialogs((state) => state.open === "saveBlock");
  const nodes = useSelection((state) => state.nodes);
  const { isBusy, save } = useSaveBlock();
  const { catalog, store } = useOpenLoop();
  const formId = useId();
  const submit = async (title: string, description: string) => {
    const parts = toBlock(catalog, store.getState().document, nodes);
    if (await save({ ...parts, title, description })) showDialog(null);
  };
  return (
    <Dialog
      title="Save as block"
      description={`${formatPlural(nodes.length, "node")} with the connections among them, for any loop. It is listed under “Yours”.`}
      isOpen={isOpen}
      onClose={() => showDialog(null)}
      footer={
        <>
          <Button onClick={() => showDialog(null)}>Cancel</Button>
          <Button
            type="submit"
            form={formId}
            look="primary"
            disabled={isBusy || nodes.length === 0}
          >
            Save
          </Button>
        </>
      }
    >
      {isOpen ? (
        <BlockForm key={nodes.join(" ")} id={formId} nodes={nodes} onSubmit={submit} />
      ) : null}
    </Dialog>
  );
}

interface BlockFormProps {
  id: string;
  nodes: readonly string[];
  onSubmit: (title: string, description: string) => void;
}

function BlockForm({ id, nodes, onSubmit }: BlockFormProps) {
  const [title, setTitle] = useState(nodes.join(", ").slice(0, MAX_TITLE));
  const [description, setDescription] = useState("");
  const titleId = useId();
  const descriptionId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (title.trim() !== "") onSubmit(title, description);
  };
  return (
    <form id={id} onSubmit={submit} className="flex flex-col gap-3">
      <div className="flex flex-col gap-1">
        <label htmlFor={titleId} className="text-muted text-sm">
          Title
        </label>
        <input
          id={titleId}
          className={WIDE_CONTROL}
          value={title}
          required
          maxLength={MAX_TITLE}
          autoComplete="off"
          onFocus={(event) => event.currentTarget.select()}
          onChange={(event) => setTitle(event.target.value)}
        />
      </div>
      <div className="flex flex-col gap-1">
        <label htmlFor={descriptionId} className="text-muted text-sm">
          What it does
        </label>
        <textarea
          id={descriptionId}
          className={`${WIDE_CONTROL} h-20 resize-y py-1.5`}
          value={description}
          maxLength={MAX_DESCRIPTION}
          onChange={(event) => setDescription(event.target.value)}
        />
      </div>
    </form>
  );
}
