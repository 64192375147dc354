import {
  Check,
  CloudOff,
  Download,
  Ellipsis,
  Eye,
  FileUp,
  History as HistoryIcon,
  ImageDown,
  Info,
  Keyboard,
  LayoutGrid,
  LoaderCircle,
  type LucideIcon,
  Redo2,
  Route,
  Search,
  Server,
  TriangleAlert,
  Undo2,
} from "lucide-react";
import { useEffect, useState } from "react";
import { toast } from "sonner";
import { modeNamed } from "@/catalog/modes";
import { loopNameNear, loopNameProblem } from "@/document/names";
import { useAbout } from "@/features/about/useAbout";
import { useExport } from "@/features/loops/useExport";
import { useImportDialog } from "@/features/loops/useImport";
import { CheckChip } from "@/features/problems/CheckChip";
import { RunButton } from "@/features/runs/start/RunButton";
import { formatName } from "@/lib/format";
import { showKeys } from "@/state/actions";
import { setValue } from "@/state/commands/fields";
import { showDialog } from "@/state/dialogs";
import {
  useCatalog,
  useDocument,
  useMode,
  useOpenLoop,
  useSetMode,
  useSync,
} from "@/state/document/context";
import { startTour } from "@/state/preferences";
import { NOT_SAVED, type SyncState } from "@/state/sync/state";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Menu, MenuItem, MenuSeparator } from "@/ui/Menu";
import { Select } from "@/ui/Select";
import { Tooltip } from "@/ui/Tooltip";
import { travel } from "../actions/useEditorActions";
import { PageHeader } from "../PageShell";
import { ThemeMenu } from "./ThemeMenu";

export function TopBar() {
  const { exportYaml } = useExport();
  return (
    <PageHeader>
      <span className="mx-1 h-5 w-px bg-line" />
      <LoopName />
      <ModeSelect />
      <SaveState />
      <AboutButton />
      <span className="flex-1" />
      <History />
      <CheckChip />
      <Button
        icon={<LayoutGrid size={14} />}
        className="max-xl:hidden"
        onClick={() => showDialog("gallery")}
      >
        Presets
      </Button>
      <Button icon={<Download size={14} />} onClick={() => void exportYaml()}>
        Export
      </Button>
      <span data-tour="run" className="inline-flex">
        <RunButton />
      </span>
      <ThemeMenu />
      <MoreMenu />
    </PageHeader>
  );
}

function History() {
  const { store } = useOpenLoop();
  const undone = useDocument((state) => state.history.past.at(-1)?.label ?? null);
  const redone = useDocument((state) => state.history.future[0]?.label ?? null);
  const isReadonly = useDocument((state) => state.isReadonly);
  const button = (way: "undo" | "redo", step: string | null, keys: string, Icon: LucideIcon) => (
    <IconButton
      label={step ? `${formatName(way)}: ${step}` : `Nothing to ${way}`}
      keys={showKeys(keys)}
      disabled={step === null || isReadonly}
      onClick={() => travel(store, way)}
      icon={<Icon size={16} />}
    />
  );
  return (
    <span className="flex">
      {button("undo", undone, "mod+z", Undo2)}
      {button("redo", redone, "mod+shift+z", Redo2)}
    </span>
  );
}

function MoreMenu() {
  const importing = useImportDialog();
  const { exportPng } = useExport();
  const { preset, open } = useAbout();
  const item = (Icon: LucideIcon, label: string, onSelect: () => void, keys?: string) => (
    <MenuItem icon={<Icon size={14} />} keys={keys} onSelect={onSelect}>
      {label}
    </MenuItem>
  );
  return (
    <>
      {importing.input}
      <Menu
        align="end"
        trigger={
          <button
            type="button"
            data-tour="more"
            aria-label="More"
            title="More"
            className="inline-flex size-8 items-center justify-center rounded-2 text-muted hover:bg-hover hover:text-text"
          >
            <Ellipsis size={16} />
          </button>
        }
      >
        {item(LayoutGrid, "Preset gallery", () => showDialog("gallery"), "G")}
        {item(FileUp, "Import YAML or a picture…", importing.ask)}
        {item(ImageDown, "Export as a picture", () => void exportPng())}
        {item(Server, "Export for a cluster…", () => showDialog("jobFile"))}
        {item(HistoryIcon, "History of this loop", () => showDialog("history"))}
        {preset === null ? null : item(Info, "About this loop", open)}
        <MenuSeparator />
        {item(Route, "Tour of the page", startTour)}
        {item(Search, "All commands", () => showDialog("commands"), showKeys("mod+k"))}
        {item(Keyboard, "Keyboard shortcuts", () => showDialog("shortcuts"), "?")}
      </Menu>
    </>
  );
}

function AboutButton() {
  const { preset, isOpen, open, close } = useAbout();
  if (preset === null) return null;
  return (
    <IconButton
      label={isOpen ? "Hide “About this loop”" : "About this loop"}
      isActive={isOpen}
      onClick={isOpen ? close : open}
      icon={<Info size={16} />}
    />
  );
}

export function ModeSelect() {
  const catalog = useCatalog();
  const isReadonly = useDocument((state) => state.isReadonly);
  const mode = useMode();
  const choose = useSetMode();
  return (
    <span className="shrink-0">
      <Select
        label="Mode of the loop"
        value={mode.name}
        options={catalog.modes.map(({ name, title, help }) => ({
          value: name,
          label: title,
          help,
        }))}
        isDisabled={isReadonly}
        className="whitespace-nowrap text-xs"
        onChange={(name) => choose(modeNamed(catalog, name))}
      />
    </span>
  );
}

function LoopName() {
  const { store } = useOpenLoop();
  const name = useDocument((state) => state.document.name);
  const isReadonly = useDocument((state) => state.isReadonly);
  const [typed, setTyped] = useState(name);
  useEffect(() => setTyped(name), [name]);
  const problem = loopNameProblem(typed);
  const rename = (value: string) =>
    store.dispatch(setValue, { path: ["name"], value }, { label: "Rename loop" });
  const take = () => {
    if (problem === null) {
      if (typed !== name) rename(typed);
      return;
    }
    setTyped(name);
    const near = loopNameNear(typed);
    toast.error(problem, {
      id: "loop-name",
      duration: 8000,
      description: `It is still called ${name}.`,
      ...(near ? { action: { label: `Call it ${near}`, onClick: () => rename(near) } } : {}),
    });
  };
  return (
    <input
      aria-label="Name of the loop"
      aria-invalid={problem !== null || undefined}
      title={problem ?? name}
      className="h-7 min-w-12 max-w-72 truncate rounded-1 border border-transparent bg-transparent px-1.5 font-semibold text-sm field-sizing-content hover:border-line focus:border-focus aria-invalid:text-error"
      value={typed}
      disabled={isReadonly}
      spellCheck={false}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => {
        if (event.key === "Enter") event.currentTarget.blur();
        if (event.key === "Escape") setTyped(name);
      }}
    />
  );
}

const LOOK = {
  preset: { Icon: Eye, text: "Preset", className: "text-muted" },
  saved: { Icon: Check, text: "Saved", className: "text-muted" },
  unsaved: { Icon: LoaderCircle, text: "Saving", className: "text-muted" },
  saving: { Icon: LoaderCircle, text: "Saving", className: "text-muted" },
  offline: { Icon: CloudOff, text: "Offline", className: "text-warning" },
  conflict: { Icon: TriangleAlert, text: "Conflict", className: "text-error" },
  refused: { Icon: TriangleAlert, text: "Not saved", className: "text-error" },
} as const;

const HELP: Record<keyof typeof LOOK, string> = {
  preset: "You are viewing a preset. The first change, or a run, saves it as your own loop.",
  saved: "All changes are saved on the server.",
  unsaved: "Your changes are being saved to the server.",
  saving: "Your changes are being saved to the server.",
  offline:
    "The server is not responding. Your changes are kept in this browser and saved as soon as it is back.",
  conflict: "This loop was changed elsewhere. Choose which version to keep.",
  refused: "The server rejected the last change. It is kept in this browser.",
};

function shownState({ brokenText, save, revision }: SyncState): keyof typeof LOOK {
  if (brokenText) return "refused";
  return save === "saved" && revision === NOT_SAVED ? "preset" : save;
}

function SaveState() {
  const save = useSync(shownState);
  const message = useSync((state) => state.saveMessage);
  const isBroken = useSync((state) => state.brokenText !== null);
  const { Icon, text, className } = LOOK[save];
  const help = isBroken
    ? "The YAML is invalid, so it is not saved. It is kept in this browser."
    : (message ?? HELP[save]);
  return (
    <Tooltip text={help}>
      <span
        role="status"
        tabIndex={0}
        data-save={save}
        className={`flex items-center gap-1 whitespace-nowrap rounded-1 px-1 text-xs ${className}`}
      >
        <Icon
          size={13}
          aria-hidden="true"
          className={save === "saving" || save === "unsaved" ? "animate-spin" : ""}
        />
        {text}
      </span>
    </Tooltip>
  );
}
