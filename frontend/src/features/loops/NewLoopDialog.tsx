import { type FormEvent, useId, useRef, useState } from "react";
import { loopNameProblem } from "@/document/names";
import { useDialogs } from "@/session/dialogs";
import { useLoopPresets } from "@/session/useLoopPresets";
import { useServerCatalog } from "@/session/useServerCatalog";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { RadioCards } from "@/ui/RadioCards";
import { Failed, Loading } from "@/ui/States";
import { PresetChoice } from "./PresetChoice";
import { useNewLoop } from "./useNewLoop";

/** Asks what a new loop is called, and what it is for or begins as. */
export function NewLoopDialog() {
  const isOpen = useDialogs((state) => state.open === "newLoop");
  const show = useDialogs((state) => state.show);
  const formId = useId();
  const { create, isCreating } = useNewLoop();
  return (
    <Dialog
      title="New loop"
      isOpen={isOpen}
      onClose={() => show(null)}
      footer={
        <>
          <Button onClick={() => show(null)}>Cancel</Button>
          <Button type="submit" form={formId} look="primary" disabled={isCreating}>
            Create
          </Button>
        </>
      }
    >
      <NewLoopForm id={formId} onSubmit={create} />
    </Dialog>
  );
}

const UNTITLED = "untitled";
/** Beside the names of modes, which are words. */
const PRESET = "a preset";
const FROM_PRESET = {
  value: PRESET,
  title: "From a preset",
  help: "A copy of a loop that ships with coloop.",
};

interface NewLoopFormProps {
  id: string;
  onSubmit: ReturnType<typeof useNewLoop>["create"];
}

function NewLoopForm({ id, onSubmit }: NewLoopFormProps) {
  const catalog = useServerCatalog();
  const presets = useLoopPresets();
  const [typed, setTyped] = useState<string | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const [wanted, setWanted] = useState<string | null>(null);
  const nameId = useId();
  const problemId = useId();

  const modes = catalog.data?.modes ?? [];
  const begin: string = chosen ?? modes[0]?.name ?? "";
  const preset = wanted ?? presets.data?.[0]?.name ?? "";
  const name = typed ?? (begin === PRESET && preset !== "" ? preset : UNTITLED);
  const problem = loopNameProblem(name);
  const field = useRef<HTMLInputElement>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A press that does nothing says nothing: the field that is wrong gets the focus, and is read aloud.
    if (problem !== null) field.current?.focus();
    if (problem !== null || begin === "" || (begin === PRESET && preset === "")) return;
    void onSubmit(name, begin === PRESET ? { preset } : { mode: begin });
  };
  return (
    <form id={id} onSubmit={submit} className="flex flex-col gap-4">
      <div className="flex flex-col gap-1">
        <label htmlFor={nameId} className="text-muted text-sm">
          Name
        </label>
        <input
          ref={field}
          id={nameId}
          className={WIDE_CONTROL}
          value={name}
          spellCheck={false}
          autoComplete="off"
          aria-invalid={problem !== null || undefined}
          aria-describedby={problem === null ? undefined : problemId}
          onFocus={(event) => event.currentTarget.select()}
          onChange={(event) => setTyped(event.target.value)}
        />
        {problem === null ? null : (
          <p id={problemId} className="text-error text-xs">
            {problem}
          </p>
        )}
      </div>
      {catalog.isPending ? <Loading label="Loading the modes" /> : null}
      {catalog.isError ? (
        <Failed
          title="The modes could not be loaded"
          error={catalog.error}
          onRetry={() => void catalog.refetch()}
        />
      ) : null}
      {catalog.data ? (
        <RadioCards
          legend="What is it for?"
          value={begin}
          options={[...modes.map((mode) => ({ ...mode, value: String(mode.name) })), FROM_PRESET]}
          onChange={setChosen}
        />
      ) : null}
      {begin === PRESET ? (
        <PresetChoice presets={presets} chosen={preset} onChoose={setWanted} />
      ) : null}
    </form>
  );
}
