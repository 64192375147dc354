import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { classes } from "./classes";
import { Tooltip } from "./Tooltip";

type Look = "primary" | "plain" | "quiet" | "danger";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  size?: "small" | "medium";
  icon?: ReactNode;
  /** Why a press does nothing now; null: it does something. The button keeps the focus, and says why. */
  refusal?: string | null;
  ref?: Ref<HTMLButtonElement>;
}

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover border-transparent shadow-1",
  plain: "bg-raised text-text border-line hover:bg-hover active:bg-pressed shadow-1",
  quiet:
    "bg-transparent text-muted border-transparent hover:bg-hover hover:text-text active:bg-pressed",
  danger: "bg-error-soft text-error border-transparent hover:brightness-95",
};

export function Button({
  look = "plain",
  size = "medium",
  icon,
  refusal,
  className,
  children,
  type = "button",
  ...rest
}: ButtonProps) {
  const button = (
    <button
      type={type}
      className={classes(
        "inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-2 border font-medium transition-colors",
        "disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-50",
        size === "small" ? "h-7 px-2 text-xs" : "h-8 px-3 text-sm",
        LOOKS[look],
        className,
      )}
      {...rest}
      {...refused(refusal)}
    >
      {icon}
      {children}
    </button>
  );
  return refusal === undefined ? button : <Tooltip text={refusal}>{button}</Tooltip>;
}

/** What makes a button one that does nothing and keeps the focus. */
export function refused(refusal: string | null | undefined) {
  if (refusal === undefined) return {};
  return { "aria-disabled": refusal !== null, ...(refusal === null ? {} : { onClick: undefined }) };
}
