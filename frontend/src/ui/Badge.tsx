import type { ReactNode } from "react";
import { classes } from "./classes";

export type Tone = "neutral" | "accent" | "success" | "warning" | "error" | "info";

const TONES: Record<Tone, string> = {
  neutral: "bg-hover text-muted",
  accent: "bg-accent-soft text-accent-text",
  success: "bg-success-soft text-success",
  warning: "bg-warning-soft text-warning",
  error: "bg-error-soft text-error",
  info: "bg-info-soft text-info",
};

interface BadgeProps {
  tone?: Tone;
  title?: string;
  className?: string;
  children: ReactNode;
}

export function Badge({ tone = "neutral", title, className, children }: BadgeProps) {
  return (
    <span
      title={title}
      className={classes(
        "inline-flex h-5 shrink-0 items-center gap-1 whitespace-nowrap rounded-full px-2 font-medium text-2xs",
        TONES[tone],
        className,
      )}
    >
      {children}
    </span>
  );
}
