import { Laptop, Server, Sparkles } from "lucide-react";
import { useRef } from "react";
import type { Catalog, LoopPreset, Sketch } from "@/api/types";
import { formatName, formatPlural, formatSeconds } from "@/lib/format";
import { Badge } from "@/ui/Badge";
import { classes } from "@/ui/classes";
import { LoopSketch } from "@/ui/LoopSketch";
import { RichText } from "@/ui/RichText";
import { useOnScreen } from "@/ui/useOnScreen";
import { isFirst } from "./filters";

interface PresetCardProps {
  preset: LoopPreset;
  catalog: Catalog | undefined;
  onOpen: () => void;
}

export function PresetCard({ preset, catalog, onOpen }: PresetCardProps) {
  const { name, title, description, traits, sketch } = preset;
  return (
    <article
      aria-label={name}
      className={classes(
        "relative flex h-full flex-col rounded-3 border bg-surface transition-shadow has-focus-visible:border-focus hover:shadow-2",
        isFirst(preset) ? "border-accent" : "border-line hover:border-line-strong",
      )}
    >
      <Thumbnail catalog={catalog} sketch={sketch} />
      {isFirst(preset) ? (
        <Badge tone="accent" className="absolute top-2 left-2">
          Start here
        </Badge>
      ) : null}
      <div className="flex flex-1 flex-col gap-1.5 px-4 py-3">
        <div className="flex items-start gap-2">
          <h3 className="min-w-0 flex-1 font-semibold text-sm leading-5">
            <button
              type="button"
              data-card
              onClick={onOpen}
              className="text-left after:absolute after:inset-0 after:rounded-3"
            >
              {title || formatName(name)}
            </button>
          </h3>
          <Time preset={preset} />
        </div>
        <p className="line-clamp-2 text-muted text-xs leading-[18px]" title={description}>
          <RichText text={description} />
        </p>
        <p className="flex items-center gap-1.5 text-xs">
          <Sparkles size={13} aria-hidden="true" className="shrink-0 text-accent-text" />
          <span className="font-medium">{traits.lesson}</span>
        </p>
        <p className="mt-auto flex flex-wrap gap-1 pt-1">
          <Badge>{formatPlural(traits.learners.length, "learner")}</Badge>
          {labels(preset).map((label) => (
            <Badge key={label}>{label}</Badge>
          ))}
        </p>
      </div>
    </article>
  );
}

function labels({ traits }: LoopPreset): string[] {
  const said = new Set(traits.algorithms.map((title) => title.toLowerCase()));
  const more = traits.tags.filter((tag) => !said.has(tag) && tag !== "full size");
  return [...traits.algorithms.slice(0, 2), ...more].slice(0, 2);
}

function Time({ preset: { traits, runnable_here: runsHere } }: { preset: LoopPreset }) {
  const { needs_gpus: needsGpus, hardware, seconds } = traits;
  const least = traits.is_whole ? "" : "over ";
  const where = needsGpus ? hardware : "a laptop's CPU";
  const more = needsGpus && !runsHere ? "; here it can be drawn, checked and estimated" : "";
  const Icon = needsGpus ? Server : Laptop;
  return (
    <span
      className={classes(
        "flex shrink-0 items-center gap-1 text-xs leading-5",
        runsHere && !needsGpus ? "text-success" : "text-muted",
      )}
      title={`Estimated: ${least}${formatSeconds(seconds)} on ${where}${more}`}
    >
      <Icon size={13} aria-hidden="true" />{" "}
      {needsGpus ? hardware : `${least}${shortTime(seconds)} ${runsHere ? "here" : "on a CPU"}`}
    </span>
  );
}

/** Whole minutes from one minute on: an estimate knows no seconds. */
function shortTime(seconds: number): string {
  return seconds < 60 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

/** The graph of a preset in small, in the colours that it has in the editor; drawn once it comes into sight. */
function Thumbnail({ catalog, sketch }: { catalog: Catalog | undefined; sketch: Sketch }) {
  const frame = useRef<HTMLDivElement>(null);
  const isSeen = useOnScreen(frame, "200px", { once: true });
  return (
    <div
      ref={frame}
      aria-hidden="true"
      className="flex h-[124px] items-center justify-center overflow-hidden rounded-t-3 border-line border-b bg-[radial-gradient(var(--canvas-dot)_0.7px,transparent_0.7px)] bg-canvas bg-size-[14px_14px] px-4 py-3"
    >
      {isSeen && catalog ? <LoopSketch catalog={catalog} sketch={sketch} /> : null}
    </div>
  );
}
