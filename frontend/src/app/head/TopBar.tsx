import {
  Download,
  Ellipsis,
  FileUp,
  History as HistoryIcon,
  ImageDown,
  Info,
  Keyboard,
  LayoutGrid,
  Redo2,
  Route,
  Search,
  Undo2,
} from "lucide-react";
import { useRef } from "react";
import { toast } from "sonner";
import { modeNamed } from "@/catalog/modes";
import { useAbout } from "@/features/about/useAbout";
import { useExport } from "@/features/loops/useExport";
import { IMPORTED, useImport } from "@/features/loops/useImport";
import { CheckChip } from "@/features/problems/CheckChip";
import { RunButton } from "@/features/runs/start/RunButton";
import { showKeys } from "@/state/actions";
import { useDialogs } from "@/state/dialogs";
import {
  useCatalog,
  useDocument,
  useMode,
  useOpenLoop,
  useSetMode,
} from "@/state/document/context";
import { startTour } from "@/state/preferences";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Menu, MenuItem, MenuSeparator } from "@/ui/Menu";
import { Select } from "@/ui/Select";
import { Brand } from "./Brand";
import { LoopName } from "./LoopName";
import { PageNav } from "./PageNav";
import { SaveState } from "./SaveState";
import { ThemeMenu } from "./ThemeMenu";

/** The head of the editor. */
export function TopBar() {
  const { exportYaml } = useExport();
  const show = useDialogs((state) => state.show);
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-line border-b bg-surface px-3">
      <Brand />
      <PageNav />
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
        onClick={() => show("gallery")}
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
    </header>
  );
}

function History() {
  const { store } = useOpenLoop();
  const undone = useDocument((state) => state.history.past.at(-1)?.label ?? null);
  const redone = useDocument((state) => state.history.future[0]?.label ?? null);
  const isReadonly = useDocument((state) => state.isReadonly);
  const travel = (way: "undo" | "redo") => {
    const label = store.getState()[way]();
    if (label) toast(`${way === "undo" ? "Undid" : "Redid"}: ${label}`, { id: "history" });
  };
  return (
    <span className="flex">
      <IconButton
        label={undone ? `Undo: ${undone}` : "Nothing to undo"}
        keys={showKeys("mod+z")}
        disabled={undone === null || isReadonly}
        onClick={() => travel("undo")}
      >
        <Undo2 size={16} />
      </IconButton>
      <IconButton
        label={redone ? `Redo: ${redone}` : "Nothing to redo"}
        keys={showKeys("mod+shift+z")}
        disabled={redone === null || isReadonly}
        onClick={() => travel("redo")}
      >
        <Redo2 size={16} />
      </IconButton>
    </span>
  );
}

function MoreMenu() {
  const show = useDialogs((state) => state.show);
  const open = useImport();
  const { exportPng } = useExport();
  const files = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={files}
        type="file"
        accept={IMPORTED}
        multiple
        hidden
        aria-label="YAML files"
        onChange={(event) => {
          void open([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
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
        <MenuItem icon={<LayoutGrid size={14} />} keys="G" onSelect={() => show("gallery")}>
          Presets gallery
        </MenuItem>
        <MenuItem icon={<FileUp size={14} />} onSelect={() => files.current?.click()}>
          Import YAML or a picture…
        </MenuItem>
        <MenuItem icon={<ImageDown size={14} />} onSelect={() => void exportPng()}>
          Export as a picture
        </MenuItem>
        <MenuItem icon={<HistoryIcon size={14} />} onSelect={() => show("history")}>
          History of this loop
        </MenuItem>
        <AboutItem />
        <MenuSeparator />
        <MenuItem icon={<Route size={14} />} onSelect={startTour}>
          Tour of the page
        </MenuItem>
        <MenuItem
          icon={<Search size={14} />}
          keys={showKeys("mod+k")}
          onSelect={() => show("commands")}
        >
          All commands
        </MenuItem>
        <MenuItem icon={<Keyboard size={14} />} keys="?" onSelect={() => show("shortcuts")}>
          Keyboard shortcuts
        </MenuItem>
      </Menu>
    </>
  );
}

/** Where the open loop is a preset or came from one. */
function AboutButton() {
  const { preset, isOpen, open, close } = useAbout();
  if (preset === null) return null;
  return (
    <IconButton
      label={isOpen ? "Hide “About this loop”" : "About this loop"}
      isActive={isOpen}
      onClick={isOpen ? close : open}
    >
      <Info size={16} />
    </IconButton>
  );
}

function AboutItem() {
  const { preset, open } = useAbout();
  if (preset === null) return null;
  return (
    <MenuItem icon={<Info size={14} />} onSelect={open}>
      About this loop
    </MenuItem>
  );
}

/** What the loop is made for, beside its name. */
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
