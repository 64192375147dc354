import { Lock, LockOpen } from "lucide-react";
import { useState } from "react";
import type { Json, KindInfo, SourceScores } from "@/api/types";
import type { PayingEdge } from "@/document/rewards";
import { readPath } from "@/lib/paths";
import { useCatalog, useDocument } from "@/state/document/context";
import { Badge } from "@/ui/Badge";
import { classes } from "@/ui/classes";
import { CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";

interface SourceRowProps {
  edge: PayingEdge;
  color: string | undefined;
  scale: number;
  said: SourceScores | null;
  isChosen: boolean;
  isLocked: boolean;
  isReadonly: boolean;
  onChoose: () => void;
  onLock: () => void;
  onWeigh: (weight: number) => void;
}

export function SourceRow(props: SourceRowProps) {
  const { edge, color, said, isChosen, onChoose } = props;
  const catalog = useCatalog();
  const data = useDocument((state) => state.document.nodes[edge.node]);
  const kind = catalog.kinds[data?.kind ?? ""];
  const problem = said === null ? null : problemOf(said);
  return (
    <li
      className={classes(
        "border-line border-t px-4 py-3",
        isChosen && "bg-[color-mix(in_oklab,var(--own)_7%,transparent)]",
      )}
      style={
        {
          "--own": color,
          "--node-color": color,
          boxShadow: isChosen ? "inset 3px 0 var(--own)" : undefined,
        } as React.CSSProperties
      }
    >
      <button
        type="button"
        aria-pressed={isChosen}
        className="flex w-full items-center gap-2 text-left"
        onClick={onChoose}
      >
        <span className={classes("loop-node-icon", edge.weight === 0 && "opacity-50")}>
          <KindIcon name={kind?.icon} size={14} />
        </span>
        <span className="min-w-0 flex-1">
          <b className="block truncate font-semibold text-sm">{edge.node}</b>
          <span className="block truncate text-muted text-xs">
            {sourceText(kind, data)}
            {edge.weight === 0 ? " · off" : ""}
          </span>
        </span>
        {problem ? <Badge tone="error">{problem}</Badge> : null}
      </button>
      <Weight {...props} />
    </li>
  );
}

function problemOf({ error, line, failures }: SourceScores): string | null {
  if (error !== null) return line === null ? "failed" : `line ${line}`;
  const [first] = failures;
  if (!first) return null;
  return first.line === null ? `${failures.length} failed` : `line ${first.line}`;
}

function Weight({ edge, scale, isLocked, isReadonly, onLock, onWeigh }: SourceRowProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const least = edge.weight < 0 ? -scale : 0;
  const share = (edge.weight - least) / (scale - least);
  const take = (text: string) => {
    setTyped(text);
    const weight = Number(text);
    if (text.trim() !== "" && Number.isFinite(weight)) onWeigh(weight);
  };
  return (
    <div className="mt-2 flex items-center gap-2">
      <input
        type="range"
        aria-label={`Weight of ${edge.node}`}
        className="weight-slider min-w-0 flex-1"
        style={{ "--share": `${share * 100}%` } as React.CSSProperties}
        min={least}
        max={scale}
        step={0.05}
        value={edge.weight}
        disabled={isReadonly || isLocked}
        onChange={(event) => onWeigh(Number(event.target.value))}
      />
      <input
        type="text"
        inputMode="decimal"
        aria-label={`Weight of ${edge.node} as a number`}
        className={`${CONTROL} tabular w-16 text-right`}
        value={typed ?? edge.weight.toFixed(2).replace(/(\.\d)0$/, "$1")}
        disabled={isReadonly || isLocked}
        aria-invalid={typed !== null && !Number.isFinite(Number(typed))}
        onChange={(event) => take(event.target.value)}
        onBlur={() => setTyped(null)}
      />
      <IconButton
        label={`${isLocked ? "Unlock" : "Lock"} the weight of ${edge.node}`}
        size="small"
        isActive={isLocked}
        onClick={onLock}
        icon={isLocked ? <Lock size={14} /> : <LockOpen size={14} />}
      />
    </div>
  );
}

/** What a source is, in a few words: its kind, and the first value that its kind calls telling. Pure. */
function sourceText(kind: KindInfo | undefined, data: Json | undefined): string {
  if (!kind) return "";
  const telling = kind.summary
    .filter((path) => !path.includes("*"))
    .map((path) => readPath(data, path.split(".")))
    .find((value) => typeof value === "string" && value !== "");
  return typeof telling === "string"
    ? `${kind.title.toLowerCase()} · ${telling}`
    : kind.title.toLowerCase();
}
