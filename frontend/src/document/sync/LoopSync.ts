/**
 * Keeps an open loop and the server in step: says when what is done.
 *
 *     edit ──pause──▶ turn: read what was typed ▶ write the text ▶ check, and save beside it
 *
 * A newer turn takes the place of an older one; typed text waits until it was read. A turn that failed is
 * tried again. Every unsaved state lies in the drafts. Knows nothing of React.
 */

import { ApiError, errorMessage, isAbort, OfflineError } from "@/api/client";
import * as routes from "@/api/routes";
import { TICKET_CHANGED } from "@/api/ticket";
import type { CheckAnswer, Loop } from "@/api/types";
import { replaceDocument } from "../commands/replaceDocument";
import { fromSpec } from "../convert";
import type { DocumentStore } from "../store";
import type { LoopDocument } from "../types";
import type { SyncApi } from "./api";
import { copyLoop } from "./copyLoop";
import { browserDrafts, type Draft, type DraftStore } from "./drafts";
import { type IsOneThing, type Merge, mergeDocuments } from "./merge";
import { type PlaceNodes, Reader } from "./Reader";
import { Saver } from "./Saver";
import { createSyncStore, nextState, pendingText, type SyncEvent, type SyncStore } from "./state";

export interface Delays {
  /** After the last key in the text. */
  type: number;
  /** After the last change of the graph. */
  ask: number;
  draft: number;
  retry: number;
}

export const DELAYS: Delays = { type: 300, ask: 160, draft: 400, retry: 3000 };

const CHANNEL = "coloop.loops";

/** The loop as it is on the screen: text and document say this, and the check is about it. */
export interface Present {
  yaml: string;
  check: CheckAnswer;
}

type Outcome = "done" | "overtaken" | "failed";

export class LoopSync {
  readonly store: SyncStore;
  private readonly reader: Reader;
  private readonly saver: Saver;
  private turn: AbortController | null = null;
  private turnTimer: ReturnType<typeof setTimeout> | undefined;
  private draftTimer: ReturnType<typeof setTimeout> | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private seenState: number;
  private isStarted = false;
  private stopped = false;
  private channel: BroadcastChannel | null = null;
  private unsubscribe: () => void = () => {};

  constructor(
    readonly loop: Loop,
    private readonly document: DocumentStore,
    private readonly api: SyncApi = routes,
    private readonly drafts: DraftStore = browserDrafts,
    private readonly delays: Delays = DELAYS,
    private readonly place: PlaceNodes = (document) => document,
  ) {
    this.store = createSyncStore(loop.revision);
    const { getState } = this.store;
    this.reader = new Reader(document, api, place, getState, this.tell);
    this.saver = new Saver(loop, document, api, getState, this.tell, (revision) => {
      this.channel?.postMessage({ id: loop.id, revision });
      if (!this.saver.isUnsaved) void this.keepDraft();
    });
    this.seenState = document.getState().history.state;
    if (loop.spec === null) this.tell({ type: "opened", text: loop.yaml });
  }

  /** A page shows the loop, for the first time or again. False where the server has it no longer. */
  async visit(): Promise<boolean> {
    if (this.isStarted) return this.lookForNews();
    this.start();
    return true;
  }

  start(): void {
    this.isStarted = true;
    this.stopped = false;
    this.unsubscribe = this.document.subscribe((state) => {
      if (state.history.state === this.seenState) return;
      this.seenState = state.history.state;
      this.onEdit();
    });
    if (typeof BroadcastChannel !== "undefined") {
      this.channel = new BroadcastChannel(CHANNEL);
      this.channel.onmessage = (message: MessageEvent<{ id: string; revision: string }>) => {
        const { id, revision } = message.data;
        if (id === this.loop.id && revision !== this.store.getState().revision)
          void this.lookForNews();
      };
    }
    globalThis.addEventListener?.("online", this.onOnline);
    globalThis.addEventListener?.(TICKET_CHANGED, this.onOnline);
    globalThis.document?.addEventListener("visibilitychange", this.onVisible);
    globalThis.addEventListener?.("pagehide", this.onLeave);
    if (this.saver.isUnsaved) this.onEdit();
    else this.schedule(0);
  }

  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.unsubscribe();
    this.channel?.close();
    // A save under way may still end, and has nobody to tell.
    this.channel = null;
    this.turn?.abort();
    clearTimeout(this.turnTimer);
    clearTimeout(this.draftTimer);
    clearTimeout(this.retryTimer);
    globalThis.removeEventListener?.("online", this.onOnline);
    globalThis.removeEventListener?.(TICKET_CHANGED, this.onOnline);
    globalThis.document?.removeEventListener("visibilitychange", this.onVisible);
    globalThis.removeEventListener?.("pagehide", this.onLeave);
    void this.keepDraft();
  }

  /** Unsaved work of an earlier visit. Its revision decides whether it can be saved over what is there. */
  restore(draft: Draft): void {
    this.tell({ type: "rebased", revision: draft.revision });
    this.saver.cameOf(draft.base ?? null, draft.sent ?? []);
    if (draft.brokenText === null) this.tell({ type: "settled" });
    else this.tell({ type: "opened", text: draft.brokenText });
    // The draft was kept between an edit and its text.
    this.document.getState().outdateText();
  }

  /** Text as the user types it. It is kept until the server has read it. */
  typeText(text: string): void {
    if (this.stopped) return;
    this.tell({ type: "typed", text });
    this.keepDraftSoon();
    this.schedule(this.delays.type);
  }

  /** Gives up typed text that was not read; the graph is the loop again. */
  discardText(): void {
    this.tell({ type: "settled" });
    void this.keepDraft();
    this.schedule(0);
  }

  checkAgain(): void {
    this.schedule(0);
  }

  /**
   * Brings everything up to what is on the screen at once. Resolves when the last edit is read, checked and
   * saved, or when the server did not take it or did not answer.
   */
  async flush(): Promise<void> {
    while (!this.stopped) {
      clearTimeout(this.turnTimer);
      const outcome = await this.take();
      if (outcome === "failed") return;
      if (outcome === "done" && (this.isStuck || !this.saver.isUnsaved)) return;
    }
  }

  /** As `flush`; a loop that is only looked at so far is saved, too. */
  async keep(): Promise<void> {
    this.saver.want();
    await this.flush();
  }

  /** What the server made of this loop on the user's wish; one undo brings back what was there. */
  adopt(loop: Loop, label: string): void {
    this.show(loop, label);
    this.channel?.postMessage({ id: loop.id, revision: loop.revision });
  }

  /** The loop as it is on the screen, or null where text and document disagree or it was not checked. */
  present(): Present | null {
    const { check, checkedText, checkStatus } = this.store.getState();
    const { text } = this.document.getState();
    if (!this.reader.isAgreed || checkStatus !== "done") return null;
    return check !== null && checkedText === text ? { yaml: text, check } : null;
  }

  async keepMine(): Promise<void> {
    const { conflict } = this.store.getState();
    if (!conflict) return;
    this.saver.know(conflict);
    this.tell({ type: "rebased", revision: conflict.revision });
    await this.flush();
  }

  /** Both versions as one, and where they want different things; null where one of them does not read. */
  merge(isOneThing?: IsOneThing): Merge | null {
    const state = this.store.getState();
    const { base } = this.saver;
    if (!state.conflict?.spec || !base || pendingText(state) !== null) return null;
    const { document } = this.document.getState();
    const { name, spec } = state.conflict;
    return mergeDocuments(base, document, { ...fromSpec(spec), name }, isOneThing);
  }

  /** What was merged, over what is there now; one undo brings back what was mine. */
  async keepBoth(merged: LoopDocument): Promise<void> {
    const { conflict } = this.store.getState();
    if (!conflict) return;
    this.saver.know(conflict);
    this.tell({ type: "rebased", revision: conflict.revision });
    const document = this.place(merged, this.document.getState().document);
    this.document
      .getState()
      .dispatch(replaceDocument, { document }, { label: "Merge both versions" });
    await this.flush();
  }

  takeTheirs(): void {
    const { conflict } = this.store.getState();
    if (conflict) this.show(conflict, "Take the other version");
  }

  async openCopy(): Promise<Loop> {
    const typed = pendingText(this.store.getState());
    if (typed === null && !(await this.reader.write(new AbortController().signal))) {
      throw new Error(this.store.getState().saveMessage ?? "The loop could not be written.");
    }
    const { text, document } = this.document.getState();
    const copy = await copyLoop(typed ?? text, `${document.name}-copy`, this.api);
    const { conflict } = this.store.getState();
    if (conflict) this.show(conflict, "Take the other version");
    return copy;
  }

  /** Everything that happens comes through here: the state goes on, and the graph is locked or free by it. */
  private readonly tell = (event: SyncEvent): void => {
    this.store.setState(nextState(this.store.getState(), event), true);
    if (event.type === "settled") this.document.setState({ isReadonly: false });
    if (event.type === "opened" || event.type === "unreadable") {
      this.document.setState({ isReadonly: true });
    }
    if (event.type === "met") void this.keepDraft();
  };

  /** Whether only the user, or a server that is back, can bring it further. */
  private get isStuck(): boolean {
    const { save, brokenText } = this.store.getState();
    return brokenText !== null || !["saved", "unsaved", "saving"].includes(save);
  }

  private readonly onOnline = () => this.schedule(0);

  private readonly onVisible = () => {
    if (globalThis.document.visibilityState === "visible") void this.lookForNews();
    else void this.keepDraft();
  };

  /** A page that is closed or loaded again right after an edit does not lose it. */
  private readonly onLeave = () => void this.keepDraft();

  private onEdit(): void {
    this.tell({ type: "edited" });
    this.keepDraftSoon();
    this.schedule(this.delays.ask);
  }

  private schedule(delay: number): void {
    if (this.stopped) return;
    clearTimeout(this.turnTimer);
    clearTimeout(this.retryTimer);
    this.turnTimer = setTimeout(() => void this.take(), delay);
  }

  /** One turn, in the place of the one before. */
  private async take(): Promise<Outcome> {
    this.turn?.abort();
    const turn = new AbortController();
    this.turn = turn;
    try {
      if (!(await this.reader.read(turn.signal))) return "overtaken";
      // Text that does not read is nobody else's.
      if (this.store.getState().brokenText !== null) void this.keepDraft();
      // What the reading changed is this turn's to write.
      clearTimeout(this.turnTimer);
      const isWritten = await this.reader.write(turn.signal);
      const saving = isWritten ? this.save() : Promise.resolve();
      await this.reader.check(turn.signal);
      await saving;
      return this.turn === turn ? "done" : "overtaken";
    } catch (error) {
      if (isAbort(error) || this.turn !== turn) return "overtaken";
      await this.onFailure(error);
      return "failed";
    }
  }

  /** Saves, whatever becomes of the turn; what came meanwhile is for the next one. */
  private async save(): Promise<void> {
    try {
      await this.saver.save();
    } catch (error) {
      await this.onFailure(error);
      return;
    }
    if (this.saver.isUnsaved && this.store.getState().save === "unsaved") this.onEdit();
    if (!this.saver.isUnsaved) void this.keepDraft();
  }

  /** Another tab or person may have saved: take it where nothing is lost, else ask. False where the loop is gone. */
  private async lookForNews(): Promise<boolean> {
    try {
      const theirs = await this.saver.lookForNews();
      if (theirs !== null && !this.stopped) this.show(theirs, "Changed elsewhere");
    } catch (error) {
      // Anything else the next save will tell.
      if (error instanceof ApiError && error.status === 404) return this.saver.isUnsaved;
    }
    return true;
  }

  private show(theirs: Loop, label: string): void {
    if (theirs.spec === null) return;
    this.tell({ type: "settled" });
    this.saver.know(theirs);
    const before = this.document.getState().document;
    const document = this.place({ ...fromSpec(theirs.spec), name: theirs.name }, before);
    this.document.getState().dispatch(replaceDocument, { document }, { label });
    this.document.getState().setText(theirs.yaml, null);
    // After the change was noticed as one: what is shown now is what is saved.
    this.tell({ type: "saved", revision: theirs.revision, at: null });
    void this.keepDraft();
    this.schedule(0);
  }

  private async onFailure(error: unknown): Promise<void> {
    // "Kept in this browser" is said when it is true.
    await this.keepDraft();
    // A change of the graph would be lost to the text once that is read.
    if (this.store.getState().typedText !== null) this.document.setState({ isReadonly: true });
    const message = error instanceof OfflineError ? null : errorMessage(error);
    this.tell({ type: "failed", message, isUnsaved: this.saver.isUnsaved });
    clearTimeout(this.retryTimer);
    if (this.stopped) return;
    // Not all tabs at once when the server is back.
    const delay = this.delays.retry * (0.75 + Math.random() / 2);
    this.retryTimer = setTimeout(() => void this.take(), delay);
  }

  private keepDraftSoon(): void {
    clearTimeout(this.draftTimer);
    this.draftTimer = setTimeout(() => void this.keepDraft(), this.delays.draft);
  }

  /** Work that is not saved lies in the draft; where all is saved there is none. */
  private async keepDraft(): Promise<void> {
    clearTimeout(this.draftTimer);
    const state = this.store.getState();
    const brokenText = pendingText(state);
    if (brokenText === null && !this.saver.isUnsaved) return this.drafts.remove(this.loop.id);
    const { document, text } = this.document.getState();
    const { revision } = state;
    const base = this.saver.base ?? undefined;
    const { sent } = this.saver;
    const at = Date.now();
    await this.drafts.write(this.loop.id, { document, text, brokenText, revision, base, sent, at });
  }
}
