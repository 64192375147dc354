import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CheckAnswer, Loop } from "@/api/types";
import {
  nextState,
  pendingText,
  type SyncEvent,
  type SyncState,
  startState,
} from "@/state/sync/state";
import { aProblem } from "../fixtures/runs";

const theirs = { id: "l", revision: "r7", name: "small", yaml: "{}" } as Loop;
const check = {
  report: { ok: true, diagnostics: [] },
  estimate: null,
  plan: null,
  mode: null,
} as CheckAnswer;
const problem = aProblem({ code: "yaml.syntax" });

const EVENTS: SyncEvent[] = [
  { type: "edited" },
  { type: "typed", text: "a" },
  { type: "opened", text: "b" },
  { type: "settled" },
  { type: "unreadable", text: "a", diagnostics: [problem] },
  { type: "checking" },
  { type: "checked", check, text: "a" },
  { type: "saving" },
  { type: "saved", revision: "r2", at: 1 },
  { type: "refused", message: "no" },
  { type: "met", theirs },
  { type: "rebased", revision: "r7" },
  { type: "failed", message: null, isUnsaved: true },
  { type: "failed", message: "busy", isUnsaved: false },
];

const stateAfter = (events: readonly SyncEvent[]): SyncState =>
  events.reduce(nextState, startState("r1"));

describe("what the page says of a loop", () => {
  it("in whatever order things happen, no two things that it says contradict each other", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
        const state = stateAfter(events);

        expect(state.save === "conflict").toBe(state.conflict !== null);
        if (state.checkStatus === "done") expect(state.check).not.toBeNull();
        if (state.saveMessage !== null) expect(["refused", "offline"]).toContain(state.save);
      }),
    );
  });

  it.each(EVENTS.filter(({ type }) => !["saved", "rebased", "met"].includes(type)))(
    "a conflict stays until a version was chosen: $type",
    (event) => {
      const state = nextState(stateAfter([{ type: "met", theirs }]), event);

      expect(state).toMatchObject({ save: "conflict", conflict: theirs });
    },
  );

  it("what is typed counts until it was read or given up", () => {
    const typed = stateAfter([{ type: "typed", text: "{ broken" }]);
    expect(pendingText(typed)).toBe("{ broken");

    const broken = nextState(typed, {
      type: "unreadable",
      text: "{ broken",
      diagnostics: [problem],
    });
    expect(broken).toMatchObject({ typedText: null, brokenText: { text: "{ broken" } });
    expect(pendingText(nextState(broken, { type: "typed", text: "{}" }))).toBe("{}");
    expect(pendingText(nextState(broken, { type: "settled" }))).toBeNull();
  });

  it("a save of the graph beside text that nobody read leaves the loop unsaved", () => {
    const state = stateAfter([
      { type: "typed", text: "{ broken" },
      { type: "saving" },
      { type: "saved", revision: "r2", at: 1 },
    ]);

    expect(state).toMatchObject({ save: "unsaved", revision: "r2" });
  });

  it("a server that is away makes nothing offline that is saved", () => {
    const failed: SyncEvent = { type: "failed", message: null, isUnsaved: false };

    expect(stateAfter([failed])).toMatchObject({ save: "saved", checkStatus: "offline" });
    expect(stateAfter([{ type: "typed", text: "a" }, failed])).toMatchObject({ save: "offline" });
  });
});
