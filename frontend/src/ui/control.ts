/** The look of inputs, shared by every form control. */
export const CONTROL =
  "h-7 min-w-0 rounded-1 border border-line bg-surface px-2 text-sm text-text placeholder:text-faint hover:border-line-strong focus:border-focus focus:outline-2 focus:outline-focus/40 focus:outline-offset-0 disabled:opacity-60 aria-invalid:border-error";

/** As wide as there is room. */
export const WIDE_CONTROL = `${CONTROL} w-full`;
