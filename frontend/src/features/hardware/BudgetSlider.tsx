import { useId } from "react";
import { formatBytes, formatShare } from "@/lib/format";
import { classes } from "@/ui/classes";

interface BudgetSliderProps {
  share: number;
  own: number;
  whole: number;
  place: string;
  hasTicks?: boolean;
  isReadonly: boolean;
  onMove: (share: number) => void;
  onBack: () => void;
  onApply: () => void;
}

const MIN = 0.05;
const STEP = 0.01;
const SIZES = [8, 16, 24, 40, 48, 64, 80, 96, 141, 180];
const GIB = 2 ** 30;

/** Memory that the loop may use of each GPU. Escape puts it back, Enter takes what was found. */
export function BudgetSlider(props: BudgetSliderProps) {
  const { share, own, whole, place, hasTicks = false, isReadonly, onMove, onBack, onApply } = props;
  const id = useId();
  const shown = `${formatBytes(share * whole)}, ${formatShare(share)} of each ${place}`;
  const at = (part: number) => `${((part - MIN) / (1 - MIN)) * 100}%`;
  return (
    <div className="min-w-0 flex-1">
      <div className="flex items-baseline gap-2 text-xs">
        <label htmlFor={id} className="font-semibold">
          Memory budget
        </label>
        <span className="flex-1" />
        <span className="tabular whitespace-nowrap">
          <b className="text-sm">{formatBytes(share * whole)}</b>{" "}
          <span className="text-muted">{formatShare(share)}</span>
        </span>
      </div>
      <div className="relative">
        <input
          id={id}
          type="range"
          className="block w-full accent-accent"
          min={MIN}
          max={1}
          step={STEP}
          value={share}
          disabled={isReadonly}
          title={isReadonly ? "The loop cannot be changed here" : undefined}
          aria-valuetext={shown}
          onChange={(event) => onMove(Number(event.target.value))}
          onKeyDown={(event) => {
            if (event.key === "Escape" && share !== own) {
              event.stopPropagation();
              onBack();
            }
            if (event.key === "Enter" && share !== own) onApply();
          }}
        />
        {share === own ? null : (
          <span
            aria-hidden="true"
            className="pointer-events-none absolute top-0 h-4 w-0.5 rounded-1 bg-line-strong"
            style={{ left: at(own) }}
          />
        )}
      </div>
      {hasTicks ? (
        <div className="tabular relative h-4 text-faint text-xs" aria-hidden="true">
          {SIZES.filter((size) => size * GIB <= whole && size * GIB >= MIN * whole).map((size) => (
            <span
              key={size}
              className={classes(
                "absolute -translate-x-1/2",
                Math.abs(size * GIB - own * whole) < 4 * GIB && "invisible",
              )}
              style={{ left: at((size * GIB) / whole) }}
            >
              {size}
            </span>
          ))}
          {share === own ? null : (
            <span className="absolute -translate-x-1/2 text-muted" style={{ left: at(own) }}>
              was {Math.round((own * whole) / GIB)}
            </span>
          )}
        </div>
      ) : null}
    </div>
  );
}
