import { ChevronLeft, ChevronRight } from "lucide-react";
import { useState } from "react";
import { Button } from "@/ui/Button";
import { CONTROL } from "@/ui/control";
import { IconButton } from "@/ui/IconButton";

interface StepChoiceProps {
  /** Those with texts, in their order. */
  steps: readonly number[];
  newest: number | null;
  /** Of which step the texts on screen are. */
  shown: number | null;
  /** Null where the newest is followed. */
  chosen: number | null;
  onChoose: (step: number | null) => void;
}

/** Of which step the texts are: one by one, by its number, or the newest as they come. */
export function StepChoice({ steps, newest, shown, chosen, onChoose }: StepChoiceProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const now = chosen ?? shown ?? newest ?? 0;
  const earlier = steps.findLast((step) => step < now);
  const later = steps.find((step) => step > now);
  const settle = () => {
    const wanted = Number(typed);
    if (typed !== null && typed.trim() !== "" && Number.isFinite(wanted)) {
      onChoose(steps.findLast((step) => step <= wanted) ?? steps[0] ?? null);
    }
    setTyped(null);
  };
  return (
    <div className="flex items-center gap-1">
      <label className="flex items-center gap-2">
        Step
        <input
          inputMode="numeric"
          autoComplete="off"
          className={`${CONTROL} tabular w-14`}
          value={typed ?? String(now)}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={settle}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            if (typed === null) onChoose(now);
            else settle();
          }}
        />
      </label>
      <IconButton
        size="small"
        label={earlier === undefined ? "No earlier step has texts" : "Earlier step"}
        aria-disabled={earlier === undefined}
        onClick={() => earlier !== undefined && onChoose(earlier)}
      >
        <ChevronLeft size={14} />
      </IconButton>
      <IconButton
        size="small"
        label={later === undefined ? "No later step has texts" : "Later step"}
        aria-disabled={later === undefined}
        onClick={() => later !== undefined && onChoose(later)}
      >
        <ChevronRight size={14} />
      </IconButton>
      <Button
        size="small"
        look="quiet"
        aria-pressed={chosen === null}
        className="tabular aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
        onClick={() => onChoose(null)}
      >
        newest ({newest})
      </Button>
    </div>
  );
}
