/** Asks for a yes before Python of a model's folder runs. A yes is for one start. */
import { create } from "zustand";
import { ApiError } from "@/api/client";
import { useDialogs } from "@/session/dialogs";

interface Asking {
  /** Fields of the loop that let it run. */
  paths: string[];
  answer: (isYes: boolean) => void;
}

export const useTrust = create<{ asking: Asking | null }>()(() => ({ asking: null }));

/** Starts something; where the service wants a yes, asks and starts it again. Null after a no. */
export async function withTrust<T>(start: (trust: boolean) => Promise<T>): Promise<T | null> {
  try {
    return await start(false);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "foreign.not_confirmed") throw error;
    useDialogs.getState().show(null);
    const isYes = await new Promise<boolean>((answer) =>
      useTrust.setState({ asking: { paths: pathsOf(error.detail), answer } }),
    );
    useTrust.setState({ asking: null });
    return isYes ? start(true) : null;
  }
}

function pathsOf(detail: unknown): string[] {
  if (typeof detail !== "object" || detail === null || !("paths" in detail)) return [];
  return Array.isArray(detail.paths) ? detail.paths.map(String) : [];
}
