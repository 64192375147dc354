import { useQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { Check, ChevronDown, Server, SlidersHorizontal } from "lucide-react";
import { Popover } from "radix-ui";
import { fetchHardware } from "@/api/routes";
import { hardwareName } from "@/document/pools";
import { formatBytes } from "@/lib/format";
import { setHardware } from "@/state/commands/fields";
import { showGpuForm, showHardwarePresets, useHardwareView } from "@/state/dialogs";
import { useDocument, useEditRefusal, useOpenLoop } from "@/state/document/context";

const LABEL = "Find hardware";

export function HardwarePicker() {
  const name = useDocument((state) => hardwareName(state.document));
  const refusal = useEditRefusal();
  const isPicking = useHardwareView((state) => state.isPicking);
  const shown = name === "cpu" ? "CPU" : name.replace(/^(\d+)x/, "$1 × ");
  return (
    <Popover.Root open={isPicking && refusal === null} onOpenChange={showHardwarePresets}>
      <Popover.Trigger
        aria-label={`Hardware: ${name}, shown as ${shown}`}
        title={refusal ?? undefined}
        className="flex h-8 max-w-44 items-center gap-2 rounded-2 border border-line bg-raised px-2.5 font-semibold text-sm shadow-1 hover:bg-hover"
      >
        <Server size={15} className="shrink-0 text-muted" aria-hidden="true" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={6}
          collisionPadding={8}
          aria-label={LABEL}
          // What opened it, such as a dialog that closes, may take the focus once more.
          onFocusOutside={(event) => event.preventDefault()}
          className="z-50 w-80 overflow-hidden rounded-3 border border-line bg-raised shadow-3 motion-safe:animate-[pop-in_100ms_ease-out]"
        >
          <HardwareList chosen={name} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function HardwareList({ chosen }: { chosen: string }) {
  const { store, catalog } = useOpenLoop();
  const sizes = useQuery({
    queryKey: ["presets", "hardware"],
    queryFn: fetchHardware,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const known = new Map(sizes.data?.map((one) => [one.name, one]));
  return (
    <Command label={LABEL} loop defaultValue={chosen}>
      <Command.Input
        autoFocus
        placeholder={LABEL}
        className="h-10 w-full border-line border-b bg-transparent px-3 text-sm outline-none"
      />
      <Command.List className="max-h-72 overflow-y-auto p-1">
        <Command.Empty className="p-3 text-muted text-sm">No matches.</Command.Empty>
        {catalog.hardware.map(({ name, title, description }) => {
          const size = known.get(name);
          return (
            <Command.Item
              key={name}
              value={name}
              keywords={[title, `${name} ${description}`]}
              onSelect={() => {
                showHardwarePresets(false);
                const label = `Run on ${name}`;
                store.dispatch(setHardware, { catalog, preset: name }, { label });
              }}
              className="flex min-h-8 cursor-default items-center gap-2 rounded-2 px-2 py-1 text-sm data-[selected=true]:bg-hover"
            >
              <span className="flex w-4 shrink-0 justify-center text-accent-text">
                {name === chosen ? <Check size={14} aria-label="chosen" /> : null}
              </span>
              <span className="min-w-0 flex-1">{title}</span>
              {size?.gpu ? (
                <span className="tabular shrink-0 text-muted text-xs">
                  {formatBytes(size.usable_bytes)} each
                </span>
              ) : null}
            </Command.Item>
          );
        })}
      </Command.List>
      <button
        type="button"
        className="flex h-9 w-full items-center gap-2 border-line border-t px-3 text-left text-sm hover:bg-hover"
        onClick={() => {
          showHardwarePresets(false);
          showGpuForm(true);
        }}
      >
        <SlidersHorizontal size={14} className="text-muted" aria-hidden="true" />
        Your own GPU, figures or price…
      </button>
    </Command>
  );
}
