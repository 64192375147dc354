/** Changes to a watched run that this tab made: not sent yet, and sent but not told of by the run yet. */
import { create } from "zustand";
import type { Json } from "@/api/types";
import { deepEqual } from "@/lib/paths";

export type Changes = Readonly<Record<string, Json>>;

interface RunEdits {
  changes: Changes;
  sent: Changes;
  set: (path: string, value: Json) => void;
  send: (sent: Changes) => void;
  confirm: (used: Changes) => void;
  refuse: () => void;
  discard: () => void;
  clear: () => void;
}

const NONE: Changes = {};

export const useRunEdits = create<RunEdits>()((set, get) => ({
  changes: NONE,
  sent: NONE,
  set: (path, value) => set({ changes: { ...get().changes, [path]: value } }),
  send: (sent) => set({ changes: without(get().changes, sent), sent: { ...get().sent, ...sent } }),
  confirm: (used) => set({ sent: without(get().sent, used) }),
  refuse: () => set({ sent: NONE }),
  discard: () => set({ changes: NONE }),
  clear: () => set({ changes: NONE, sent: NONE }),
}));

function without(changes: Changes, done: Changes): Changes {
  const left = Object.entries(changes).filter(
    ([path, value]) => !(path in done && deepEqual(done[path], value)),
  );
  return left.length === 0 ? NONE : Object.fromEntries(left);
}
