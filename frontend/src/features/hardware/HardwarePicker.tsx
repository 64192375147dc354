import { useQuery } from "@tanstack/react-query";
import { ChevronDown, Server } from "lucide-react";
import { fetchHardware } from "@/api/routes";
import { hardwareName } from "@/document/pools";
import { formatBytes } from "@/lib/format";
import { setHardware } from "@/state/commands/fields";
import { showHardwarePresets, useHardwareView } from "@/state/dialogs";
import { useCatalog, useDocument, useOpenLoop } from "@/state/document/context";
import { SearchList } from "@/ui/SearchList";

export function HardwarePicker() {
  const { store, catalog } = useOpenLoop();
  const name = useDocument((state) => hardwareName(state.document));
  const isReadonly = useDocument((state) => state.isReadonly);
  const isPicking = useHardwareView((state) => state.isPicking);
  const options = useHardwareOptions(isPicking);
  const shown = name === "cpu" ? "CPU" : name.replace(/^(\d+)x/, "$1 × ");
  return (
    <SearchList
      label="Find hardware"
      value={name}
      options={options}
      isOpen={isPicking && !isReadonly}
      onOpenChange={showHardwarePresets}
      onChoose={(preset) =>
        store.dispatch(setHardware, { catalog, preset }, { label: `Run on ${preset}` })
      }
    >
      <button
        type="button"
        aria-label={`Hardware: ${name}, shown as ${shown}`}
        title={isReadonly ? "The loop cannot be changed here" : undefined}
        className="flex h-8 max-w-44 items-center gap-2 rounded-2 border border-line bg-raised px-2.5 font-semibold text-sm shadow-1 hover:bg-hover"
      >
        <Server size={15} className="shrink-0 text-muted" aria-hidden="true" />
        <span className="truncate">{shown}</span>
        <ChevronDown size={14} className="shrink-0 text-faint" aria-hidden="true" />
      </button>
    </SearchList>
  );
}

function useHardwareOptions(isAsked: boolean) {
  const { hardware } = useCatalog();
  const sizes = useQuery({
    queryKey: ["presets", "hardware"],
    queryFn: fetchHardware,
    enabled: isAsked,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const known = new Map(sizes.data?.map((one) => [one.name, one]));
  return hardware.map(({ name, title, description }) => {
    const size = known.get(name);
    const note = size?.gpu ? `${formatBytes(size.usable_bytes)} each` : null;
    return {
      value: name,
      label: title,
      words: `${name} ${description}`,
      ...(note ? { note } : {}),
    };
  });
}
