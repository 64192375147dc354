import type { LoopPreset } from "@/api/types";
import { formatName } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { RichText } from "@/ui/RichText";

interface PresetCardProps {
  preset: LoopPreset;
  onOpen: () => void;
}

/** What a preset is, what one learns from it, and whether this machine can run it. All of it is its button. */
export function PresetCard({ preset, onOpen }: PresetCardProps) {
  const { name, title, description, tags, runnable_here: runsHere } = preset;
  return (
    <article
      aria-label={name}
      className="relative flex h-full min-h-40 flex-col rounded-3 border border-line bg-surface p-4 transition-shadow has-focus-visible:border-focus hover:border-line-strong hover:shadow-2"
    >
      <h3 className="flex items-start gap-2 font-semibold text-base leading-5">
        <button
          type="button"
          onClick={onOpen}
          className="min-w-0 flex-1 text-left after:absolute after:inset-0 after:rounded-3"
        >
          {title || formatName(name)}
        </button>
      </h3>
      <p className="truncate font-mono text-faint text-xs">{name}</p>
      <p className="my-2 line-clamp-4 flex-1 text-muted text-sm wrap-anywhere">
        <RichText text={description} />
      </p>
      <p className="flex flex-wrap items-center gap-1">
        {runsHere === undefined ? null : runsHere ? (
          <Badge tone="success">runs here</Badge>
        ) : (
          <Badge tone="neutral" title="It can be drawn, checked and estimated on this machine">
            not on this machine
          </Badge>
        )}
        {tags?.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </p>
    </article>
  );
}
