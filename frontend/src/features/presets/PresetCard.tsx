import { LoaderCircle } from "lucide-react";
import type { LoopPreset } from "@/api/types";
import { formatName } from "@/lib/format";
import { Badge } from "@/ui/Badge";

interface PresetCardProps {
  preset: LoopPreset;
  isOpening: boolean;
  isDisabled: boolean;
  onOpen: () => void;
}

/** What a preset is, what one learns from it, and whether this machine can run it. */
export function PresetCard({ preset, isOpening, isDisabled, onOpen }: PresetCardProps) {
  return (
    <button
      type="button"
      disabled={isDisabled}
      onClick={onOpen}
      aria-label={`Open ${preset.title ?? preset.name}`}
      className="flex h-full min-h-40 w-full flex-col gap-2 rounded-3 border border-line bg-surface p-4 text-left transition-shadow hover:border-line-strong hover:shadow-2 disabled:opacity-60"
    >
      <span className="flex w-full items-center gap-2">
        <span
          className="min-w-0 flex-1 truncate font-semibold text-base"
          title={preset.title ?? preset.name}
        >
          {preset.title ?? formatName(preset.name)}
        </span>
        {isOpening ? <LoaderCircle size={14} className="animate-spin text-muted" /> : null}
      </span>
      <span className="line-clamp-4 flex-1 text-muted text-sm">{preset.description}</span>
      <span className="flex flex-wrap items-center gap-1">
        {preset.runnable_here === undefined ? null : preset.runnable_here ? (
          <Badge tone="success">runs here</Badge>
        ) : (
          <Badge tone="neutral" title="It can be drawn, checked and estimated on this machine">
            not on this machine
          </Badge>
        )}
        {preset.tags?.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </span>
    </button>
  );
}
