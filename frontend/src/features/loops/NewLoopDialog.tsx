import { type FormEvent, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import * as routes from "@/api/routes";
import type { ModeInfo } from "@/api/types";
import { beginBlock, CO_TRAINING } from "@/document/blocks";
import { loopNameProblem } from "@/document/names";
import { EMPTY_DOCUMENT } from "@/document/types";
import { formatName } from "@/lib/format";
import { showDialog, useDialogs } from "@/state/dialogs";
import { chooseForeign, forgetForeign, useForeign } from "@/state/foreign";
import { useBlocks, useLoopPresets, useServerCatalog } from "@/state/queries";
import { type Beginning, newLoop } from "@/state/sync/newLoops";
import { useAttempt } from "@/state/useAttempt";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { RadioCards } from "@/ui/RadioCards";
import { RichText } from "@/ui/RichText";
import { Select } from "@/ui/Select";
import { Answer } from "@/ui/States";
import { ForeignLoop } from "./ForeignLoop";
import { ForeignText } from "./ForeignText";

export function NewLoopDialog() {
  const isOpen = useDialogs((state) => state.open === "newLoop");
  const isForeign = useForeign((state) => state.isChosen);
  const formId = useId();
  const [, navigate] = useLocation();
  const { isBusy, attempt } = useAttempt("loops");
  const close = () => {
    showDialog(null);
    forgetForeign();
  };
  const create = (name: string, begin: Beginning) =>
    void attempt(async () => {
      const loop = await newLoop(name, begin, routes);
      close();
      navigate(`/loops/${loop.id}`);
    }, "The loop could not be created.");
  return (
    <Dialog
      title="New loop"
      isOpen={isOpen}
      onClose={close}
      width={isForeign ? "max-w-5xl" : "max-w-3xl"}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" form={formId} look="primary" disabled={isBusy}>
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
const PRESET = "a preset";
const EMPTY = "";
const CO_TRAINING_MODE = {
  value: CO_TRAINING,
  title: "Co-training",
  help: "Several models learn from each other: a solver and its judge, a proposer and a solver, debaters.",
};
/** The mode whose settings a loop of co-training has. */
const CO_TRAINING_IS = "online";
const FOREIGN = "foreign";
const FROM_ANOTHER = {
  value: FOREIGN,
  title: "From another framework",
  help: "A script or YAML of TRL, a verl command or YAML, OpenRLHF arguments. Nothing is run.",
};
const FROM_PRESET = {
  value: PRESET,
  title: "From a preset",
  help: "A copy of a loop that ships with coloop.",
};

interface NewLoopFormProps {
  id: string;
  onSubmit: (name: string, begin: Beginning) => void;
}

function NewLoopForm({ id, onSubmit }: NewLoopFormProps) {
  const catalog = useServerCatalog();
  const presets = useLoopPresets();
  const [typed, setTyped] = useState<string | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const [wanted, setWanted] = useState<string | null>(null);
  const [wantedBlock, setWantedBlock] = useState(EMPTY);
  const blocks = useBlocks();
  const nameId = useId();
  const problemId = useId();

  const modes = catalog.data?.modes ?? [];
  const foreign = useForeign();
  const begin: string = foreign.isChosen ? FOREIGN : (chosen ?? modes[0]?.name ?? "");
  const offered = blocks.filter(({ is_own: isOwn, tags }) => isOwn || tags.includes(begin));
  const block = offered.find(({ id }) => id === wantedBlock);
  const preset = wanted ?? presets.data?.[0]?.name ?? "";
  const name = typed ?? nameOf(begin, preset, foreign.found?.name);
  const problem = loopNameProblem(name);
  const field = useRef<HTMLInputElement>(null);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A press that does nothing says nothing: the field that is wrong gets the focus, and is read aloud.
    if (problem !== null) field.current?.focus();
    if (problem !== null || begin === "" || (begin === PRESET && preset === "")) return;
    if (begin === PRESET) return onSubmit(name, { preset });
    if (begin === FOREIGN) {
      if (foreign.found) onSubmit(name, { yaml: foreign.found.yaml });
      return;
    }
    const parts =
      block && catalog.data ? beginBlock(catalog.data, EMPTY_DOCUMENT, block) : undefined;
    const mode = begin === CO_TRAINING ? CO_TRAINING_IS : begin;
    onSubmit(name, parts ? { mode, parts } : { mode });
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
      <div className="grid gap-4 md:grid-cols-2">
        <Answer query={catalog} loading="Loading the modes" failed="The modes could not be loaded">
          {() => (
            <RadioCards
              legend="What is it for?"
              value={begin}
              options={modeOptions(modes)}
              onChange={(value) => {
                chooseForeign(value === FOREIGN);
                setChosen(value);
              }}
            />
          )}
        </Answer>
        {begin === FOREIGN ? (
          <ForeignText />
        ) : begin === PRESET ? (
          <PresetChoice presets={presets} chosen={preset} onChoose={setWanted} />
        ) : (
          <RadioCards
            legend="Begin with"
            value={block ? block.id : EMPTY}
            options={[
              { value: EMPTY, title: "Empty canvas", help: "Nodes are added one by one." },
              ...offered.map(({ id, title, description }) => ({
                value: id,
                title,
                help: description,
              })),
            ]}
            onChange={setWantedBlock}
          />
        )}
      </div>
      {begin === FOREIGN && catalog.data ? <ForeignLoop catalog={catalog.data} /> : null}
    </form>
  );
}

function modeOptions(modes: readonly ModeInfo[]) {
  const [first, ...others] = modes.map((mode) => ({ ...mode, value: String(mode.name) }));
  return [...(first ? [first] : []), CO_TRAINING_MODE, ...others, FROM_PRESET, FROM_ANOTHER];
}

function nameOf(begin: string, preset: string, found: string | undefined): string {
  if (begin === FOREIGN) return found ?? UNTITLED;
  return begin === PRESET && preset !== "" ? preset : UNTITLED;
}

interface PresetChoiceProps {
  presets: ReturnType<typeof useLoopPresets>;
  chosen: string;
  onChoose: (name: string) => void;
}

function PresetChoice({ presets, chosen, onChoose }: PresetChoiceProps) {
  const preset = presets.data?.find(({ name }) => name === chosen);
  return (
    <Answer query={presets} loading="Loading the presets" failed="The presets could not be loaded">
      {(all) => (
        <div>
          <Select
            label="Preset"
            value={chosen}
            options={all.map(({ name, title, runnable_here: runsHere }) => ({
              value: name,
              label: title || formatName(name),
              help: runsHere ? name : `${name}, not on this machine`,
            }))}
            onChange={onChoose}
          />
          <p className="mt-1.5 line-clamp-3 text-muted text-xs">
            <RichText text={preset?.description ?? ""} />
          </p>
        </div>
      )}
    </Answer>
  );
}
