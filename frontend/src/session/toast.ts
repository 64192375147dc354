/** Short messages at the foot of the page. What shows them is large, and is fetched when it is first needed. */
import type { ExternalToast, toast as sonnerToast } from "sonner";
import { create } from "zustand";

type Message = (shower: typeof sonnerToast) => void;

/** Whether somebody has said something. */
export const useIsTold = create<boolean>(() => false);

let shower: typeof sonnerToast | null = null;
let waiting: Message[] = [];

function tell(message: Message): void {
  if (shower) message(shower);
  else {
    waiting.push(message);
    useIsTold.setState(true, true);
  }
}

/** What was said before there was somebody to show it is shown now. */
export function showToastsBy(ready: typeof sonnerToast): void {
  shower = ready;
  const said = waiting;
  waiting = [];
  for (const message of said) message(ready);
}

export const toast = Object.assign(
  (text: string, options?: ExternalToast) => tell((show) => show(text, options)),
  {
    success: (text: string, options?: ExternalToast) => tell((show) => show.success(text, options)),
    error: (text: string, options?: ExternalToast) => tell((show) => show.error(text, options)),
  },
);
