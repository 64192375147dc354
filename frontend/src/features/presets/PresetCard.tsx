import { LoaderCircle } from "lucide-react";
import type { LoopPreset } from "@/api/types";
import { formatName } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { RichText } from "@/ui/RichText";

/** A long title says after its colon what the text should say. */
function presetWords({ name, title, description }: LoopPreset): { title: string; text: string } {
  const [head = "", ...rest] = (title || formatName(name)).split(": ");
  const tail = rest.join(": ");
  const sentence = tail === "" ? "" : `${tail.charAt(0).toUpperCase()}${tail.slice(1)}`;
  return {
    title: head,
    text: [sentence.replace(/\.?$/, sentence ? "." : ""), description].filter(Boolean).join(" "),
  };
}

interface PresetCardProps {
  preset: LoopPreset;
  isOpening: boolean;
  isDisabled: boolean;
  onOpen: () => void;
}

/** What a preset is, what one learns from it, and whether this machine can run it. */
export function PresetCard({ preset, isOpening, isDisabled, onOpen }: PresetCardProps) {
  const { title, text } = presetWords(preset);
  return (
    <button
      type="button"
      disabled={isDisabled}
      onClick={onOpen}
      aria-label={`Open ${title}`}
      className="flex h-full min-h-40 w-full flex-col gap-2 rounded-3 border border-line bg-surface p-4 text-left transition-shadow hover:border-line-strong hover:shadow-2 disabled:opacity-60"
    >
      <span className="flex w-full items-center gap-2">
        <span className="min-w-0 flex-1 truncate font-semibold text-base" title={title}>
          {title}
        </span>
        {isOpening ? <LoaderCircle size={14} className="animate-spin text-muted" /> : null}
      </span>
      <span className="line-clamp-4 flex-1 text-muted text-sm">
        <RichText text={text} />
      </span>
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
