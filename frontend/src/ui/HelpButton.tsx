import { CircleHelp } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "./classes";
import { Tooltip } from "./Tooltip";

interface HelpButtonProps {
  about: string;
  text: ReactNode;
  className?: string;
}

export function HelpButton({ about, text, className }: HelpButtonProps) {
  return (
    <Tooltip text={text} side="left">
      <button
        type="button"
        aria-label={`About ${about}`}
        className={classes("inline-flex shrink-0 text-faint hover:text-text", className)}
      >
        <CircleHelp size={12} />
      </button>
    </Tooltip>
  );
}
