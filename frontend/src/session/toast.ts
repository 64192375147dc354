/** Short messages at the foot of the page. What shows them is fetched when it is first needed. */
import { create } from "zustand";

interface ToastOptions {
  /** One that says the same thing anew takes the place of the one before. */
  id?: string;
  /** Milliseconds for which it is shown. */
  duration?: number;
  description?: string;
  action?: { label: string; onClick: () => void };
}

export interface Toast extends ToastOptions {
  id: string;
  kind: "told" | "success" | "error";
  text: string;
  duration: number;
  /** Counts what was said, so that a message that is said anew is shown for its whole time. */
  time: number;
}

const DURATION = 2500;
/** At a time. */
const MOST = 3;

/** What is said, the last of it last. */
export const useToasts = create<readonly Toast[]>(() => []);

let count = 0;

function tell(kind: Toast["kind"], text: string, options: ToastOptions = {}): void {
  count += 1;
  const toast = { duration: DURATION, id: `${count}`, ...options, kind, text, time: count };
  useToasts.setState(
    (shown) => [...shown.filter(({ id }) => id !== toast.id), toast].slice(-MOST),
    true,
  );
}

export function dismissToast(id: string): void {
  useToasts.setState((shown) => shown.filter((one) => one.id !== id), true);
}

export const toast = Object.assign(
  (text: string, options?: ToastOptions) => tell("told", text, options),
  {
    success: (text: string, options?: ToastOptions) => tell("success", text, options),
    error: (text: string, options?: ToastOptions) => tell("error", text, options),
  },
);
