export const CONTROL =
  "h-7 min-w-0 rounded-1 border border-line bg-surface px-2 text-sm text-text placeholder:text-faint hover:border-line-strong focus:border-focus focus:outline-2 focus:outline-focus/40 focus:outline-offset-0 disabled:opacity-60 aria-invalid:border-error";

export const WIDE_CONTROL = `${CONTROL} w-full`;

/** The closed form of a list: what is chosen, and that there is more. It wraps rather than being cut. */
export const CHOSEN =
  "flex min-h-7 w-full min-w-0 items-center gap-1 rounded-1 border border-line bg-surface py-0.5 pr-1 pl-2 text-left text-sm leading-5 hover:border-line-strong focus-visible:border-focus focus-visible:outline-2 focus-visible:outline-focus/40 disabled:opacity-60";
