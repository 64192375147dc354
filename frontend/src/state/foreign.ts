/** A configuration of another framework, before its loop is made. */
import { create } from "zustand";
import { ApiError, errorMessage } from "@/api/client";
import { importConfiguration } from "@/api/routes";
import type { ImportedLoop } from "@/api/types";
import { showDialog } from "./dialogs";

interface Foreign {
  /** Whether a new loop begins as one. */
  isChosen: boolean;
  text: string;
  /** Name of the file; empty: the text was pasted. */
  name: string;
  found: ImportedLoop | null;
  problem: string | null;
  isReading: boolean;
}

const NOTHING: Foreign = {
  isChosen: false,
  text: "",
  name: "",
  found: null,
  problem: null,
  isReading: false,
};

export const useForeign = create<Foreign>()(() => NOTHING);

export function chooseForeign(isChosen: boolean): void {
  useForeign.setState({ isChosen });
}

export function forgetForeign(): void {
  useForeign.setState(NOTHING);
}

/** Opens a new loop with a configuration in it. */
export function showForeign(text: string, name: string): void {
  useForeign.setState({ ...NOTHING, isChosen: true });
  showDialog("newLoop");
  void readForeign(text, name);
}

/** Has a text read; the answer to an older text is dropped. */
export async function readForeign(text: string, name = ""): Promise<void> {
  const isEmpty = text.trim() === "";
  useForeign.setState({ text, name, found: null, problem: null, isReading: !isEmpty });
  if (isEmpty) return;
  const answer = await importConfiguration({ text, name, others: [] }).then(
    (found) => ({ found, problem: null }),
    (error: unknown) => ({ found: null, problem: problemOf(error) }),
  );
  if (useForeign.getState().text === text) useForeign.setState({ ...answer, isReading: false });
}

function problemOf(error: unknown): string {
  return error instanceof ApiError ? error.message : errorMessage(error);
}
