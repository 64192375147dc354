import type { ReactNode } from "react";
import { type ButtonProps, refused } from "./Button";
import { classes } from "./classes";
import { Tooltip } from "./Tooltip";

const SIZES = { tiny: "size-5", small: "size-6", medium: "size-8" };

export interface IconButtonProps extends Omit<ButtonProps, "children" | "look" | "size"> {
  label: string;
  size?: keyof typeof SIZES;
  keys?: string | undefined;
  isActive?: boolean;
  side?: "top" | "right" | "bottom" | "left";
  icon: ReactNode;
}

export function IconButton({
  label,
  keys,
  isActive,
  side,
  size = "medium",
  className,
  icon,
  refusal,
  type = "button",
  ...rest
}: IconButtonProps) {
  return (
    <Tooltip text={refusal ?? label} keys={keys} side={side ?? "bottom"}>
      <button
        type={type}
        aria-label={refusal ?? label}
        aria-pressed={isActive}
        className={classes(
          "inline-flex shrink-0 items-center justify-center rounded-2 text-muted transition-colors hover:bg-hover hover:text-text active:bg-pressed",
          "disabled:cursor-not-allowed disabled:opacity-40 disabled:hover:bg-transparent",
          SIZES[size],
          isActive && "bg-accent-soft text-accent-text",
          className,
        )}
        {...rest}
        {...refused(refusal)}
      >
        {icon}
      </button>
    </Tooltip>
  );
}
