/**
 * Keeps an open loop and the server in step: says when what is done.
 *
 *     edit ──pause──▶ turn: one request, in which the server writes the text, checks the loop and saves it
 *
 * One turn at a time; what comes meanwhile goes with the next. What was typed is read by the same request, and
 * becomes the document. A turn that failed is tried again. Every unsaved state lies in the drafts. Knows nothing
 * of React.
 */
import { ApiError, errorMessage, isAbort, OfflineError } from "@/api/client";
import * as routes from "@/api/routes";
import { TICKET_CHANGED } from "@/api/ticket";
import type { CheckAnswer, Diagnostic, DocumentConflict, Loop, WrittenDocument } from "@/api/types";
import { fromSpec, toSpec } from "@/document/convert";
import type { LoopDocument } from "@/document/types";
import { replaceDocument } from "../commands/replaceDocument";
import type { DocumentStore, StoreDispatchOptions } from "../document/store";
import { browserDrafts, type Draft, type DraftStore, type Sent, TAB } from "./drafts";
import { type IsOneThing, type Merge, mergeDocuments } from "./merge";
import { copyLoop } from "./newLoops";
import {
  createSyncStore,
  NOT_SAVED,
  nextState,
  pendingText,
  type SyncEvent,
  type SyncStore,
} from "./state";
import { isOfSent, isVersion, type SyncApi, type Version, versionOf, withSent } from "./versions";

/** Gives nodes that came without a place one, and leaves the others where they were. */
export type PlaceNodes = (document: LoopDocument, before: LoopDocument) => LoopDocument;

export type Delays = typeof DELAYS;

export const DELAYS = { type: 300, ask: 160, draft: 400, retry: 3000 };

const CHANNEL = "coloop.loops";
/** Answers that say that a text is no use to the server, and such as may be another one later. */
const UNREADABLE = [400, 413, 422];
const TRANSIENT = [401, 408, 429];

/** The loop as it is on the screen: text and document say this, and the check is about it. */
export interface Present {
  yaml: string;
  check: CheckAnswer;
}

export class LoopSync {
  readonly store: SyncStore;
  private known: Version;
  /** What was sent without an answer: the server may have one of these. */
  private sent: readonly Sent[] = [];
  private isWanted = false;
  private isSaving = false;
  /** The turn under way, and the one that waits for its end: whether the server answered. */
  private turn: Promise<boolean> = Promise.resolve(true);
  private next: Promise<boolean> | null = null;
  private checking: AbortController | null = null;
  private turnTimer: ReturnType<typeof setTimeout> | undefined;
  private draftTimer: ReturnType<typeof setTimeout> | undefined;
  private seenState: number;
  private isStarted = false;
  private stopped = false;
  private channel: BroadcastChannel | null = null;
  private readonly listening = new AbortController();
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
    this.known = versionOf(loop);
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
    this.unsubscribe = this.document.subscribe(({ history }) => {
      if (history.state === this.seenState) return;
      this.seenState = history.state;
      this.onEdit();
    });
    if (typeof BroadcastChannel !== "undefined") {
      this.channel = new BroadcastChannel(CHANNEL);
      this.channel.onmessage = ({ data }: MessageEvent<{ id: string; revision: string }>) => {
        const isNews = data.id === this.loop.id && data.revision !== this.state.revision;
        if (isNews) void this.lookForNews();
      };
    }
    const { signal } = this.listening;
    for (const event of ["online", TICKET_CHANGED]) {
      globalThis.addEventListener?.(event, () => this.schedule(0), { signal });
    }
    globalThis.document?.addEventListener("visibilitychange", this.onVisible, { signal });
    // A page that is closed or loaded again right after an edit does not lose it.
    globalThis.addEventListener?.("pagehide", () => void this.keepDraft(), { signal });
    if (this.isUnsaved) this.onEdit();
    else this.schedule(0);
  }

  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.unsubscribe();
    this.listening.abort();
    this.channel?.close();
    // A save under way may still end, and has nobody to tell.
    this.channel = null;
    this.checking?.abort();
    clearTimeout(this.turnTimer);
    void this.keepDraft();
  }

  /** Unsaved work of an earlier visit. Its revision decides whether it can be saved over what is there. */
  restore({ revision, base, sent, brokenText }: Draft): void {
    this.tell({ type: "rebased", revision });
    this.known = { ...this.known, document: base ?? null };
    this.sent = sent ?? [];
    this.tell(brokenText === null ? { type: "settled" } : { type: "opened", text: brokenText });
    this.document.outdateText();
  }

  typeText(text: string): void {
    if (this.stopped) return;
    this.tell({ type: "typed", text });
    this.keepDraftSoon();
    this.schedule(this.delays.type);
  }

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
    while (!this.stopped && (await this.take())) {
      const { save, brokenText, typedText } = this.state;
      const isDone = typedText === null && !this.isUnsaved;
      const isMoving = brokenText === null && ["saved", "unsaved", "saving"].includes(save);
      if (isDone || !isMoving) return;
    }
  }

  /** As `flush`; a loop that is only looked at so far is saved, too. */
  async keep(): Promise<void> {
    this.isWanted = true;
    await this.flush();
  }

  /** What the server made of this loop on the user's wish; one undo brings back what was there. */
  adopt(loop: Loop, label: string): void {
    if (loop.spec !== null) {
      this.tell({ type: "settled" });
      this.replaceBy({ ...fromSpec(loop.spec), name: loop.name }, { label }, loop.yaml);
      this.know(versionOf(loop), { type: "saved", revision: loop.revision, at: null });
      void this.keepDraft();
      this.schedule(0);
    }
    this.channel?.postMessage({ id: this.loop.id, revision: loop.revision });
  }

  /** The loop as it is on the screen, or null where text and document disagree or it was not checked. */
  present(): Present | null {
    const { check, checkedText, checkStatus } = this.state;
    const { text } = this.document.getState();
    if (!this.isAgreed || checkStatus !== "done") return null;
    return check !== null && checkedText === text ? { yaml: text, check } : null;
  }

  async keepMine(): Promise<void> {
    if (this.passOver()) await this.flush();
  }

  /** Both versions as one, and where they want different things; null where one of them does not read. */
  merge(isOneThing?: IsOneThing): Merge | null {
    const { conflict } = this.state;
    const base = this.known.document;
    if (!conflict?.spec || !base || pendingText(this.state) !== null) return null;
    const theirs = { ...fromSpec(conflict.spec), name: conflict.name };
    return mergeDocuments(base, this.document.getState().document, theirs, isOneThing);
  }

  /** What was merged, over what is there now; one undo brings back what was mine. */
  async keepBoth(merged: LoopDocument): Promise<void> {
    if (!this.passOver()) return;
    this.replaceBy(merged, { label: "Merge both versions" });
    await this.flush();
  }

  takeTheirs(): void {
    const { conflict } = this.state;
    if (conflict) this.adopt(conflict, "Take the other version");
  }

  async openCopy(): Promise<Loop> {
    const typed = pendingText(this.state);
    if (typed === null && !this.isAgreed) await this.flush();
    if (typed === null && !this.isAgreed) {
      throw new Error(this.state.saveMessage ?? "The loop could not be saved.");
    }
    const { text, document } = this.document.getState();
    const copy = await copyLoop(typed ?? text, `${document.name}-copy`, this.api);
    this.takeTheirs();
    return copy;
  }

  private get state() {
    return this.store.getState();
  }

  private get isAgreed(): boolean {
    const { textState, history } = this.document.getState();
    return pendingText(this.state) === null && textState === history.state;
  }

  private get isUnsaved(): boolean {
    if (this.isWanted && this.state.revision === NOT_SAVED) return true;
    return this.sent.length > 0 || !isVersion(this.known, this.document.getState());
  }

  /** Everything that happens comes through here: the state goes on, and the graph is locked or free by it. */
  private readonly tell = (event: SyncEvent): void => {
    this.store.setState(nextState(this.state, event), true);
    if (event.type === "settled") this.document.setState({ isReadonly: false });
    if (event.type === "opened" || event.type === "unreadable") {
      this.document.setState({ isReadonly: true });
    }
    if (event.type === "met" || event.type === "unreadable") void this.keepDraft();
  };

  private readonly onVisible = () => {
    if (globalThis.document.visibilityState === "visible") void this.lookForNews();
    else void this.keepDraft();
  };

  private onEdit(): void {
    this.tell({ type: "edited" });
    this.keepDraftSoon();
    this.schedule(this.delays.ask);
  }

  private schedule(delay: number): void {
    clearTimeout(this.turnTimer);
    if (!this.stopped) this.turnTimer = setTimeout(() => void this.take(), delay);
  }

  /** One more turn, after the one that is under way. False where the server did not answer. */
  private take(): Promise<boolean> {
    // An answer about what was there before is of no use any more.
    this.checking?.abort();
    this.next ??= this.turn.then(() => {
      this.next = null;
      clearTimeout(this.turnTimer);
      this.turn = this.ask();
      return this.turn;
    });
    return this.next;
  }

  private async ask(): Promise<boolean> {
    if (this.stopped) return true;
    try {
      const { typedText, brokenText } = this.state;
      const isUnsaved = brokenText === null && this.isUnsaved;
      if (typedText !== null || isUnsaved) await this.save(typedText);
      else await this.look();
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      await this.onFailure(error);
      return false;
    }
  }

  /** Has the document, or what was typed, written, checked and saved over the revision that is known. */
  private async save(typed: string | null): Promise<void> {
    const { document, history, text, textState } = this.document.getState();
    const { revision } = this.state;
    const isWritten = typed !== null || textState === history.state;
    const { sent } = this;
    const mine = { yaml: typed ?? text, document: isWritten ? null : document };
    const show = (written: WrittenDocument) => this.show(written, typed, document, history.state);
    this.sent = withSent(sent, mine);
    this.isSaving = true;
    this.tell({ type: "saving" });
    try {
      const saved = await this.api.saveDocument(this.loop.id, {
        base: revision === NOT_SAVED ? null : revision,
        yaml: mine.yaml,
        ...(isWritten ? {} : { spec: toSpec(document) }),
        strict: typed !== null,
        edit_session: TAB,
      });
      const now = show(saved);
      this.onSaved({ yaml: saved.yaml, name: now.name, document: now }, saved.revision);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      // It came and was not taken; what was sent before it may have been.
      this.sent = sent;
      if (TRANSIENT.includes(error.status)) throw error;
      if (error.status === 409) {
        const { theirs, mine } = error.detail as DocumentConflict;
        show(mine);
        await this.meet(theirs, mine.yaml);
      } else {
        this.onRefusal(error, typed);
        if (this.state.checkStatus !== "done") await this.look();
      }
    } finally {
      this.isSaving = false;
    }
    if (this.isUnsaved && this.state.save === "saved") this.onEdit();
    if (!this.isUnsaved) void this.keepDraft();
  }

  /** Shows what the server wrote of a document, or read in what was typed; what came meanwhile stays. */
  private show(
    { yaml, spec, check }: WrittenDocument,
    typed: string | null,
    sent: LoopDocument,
    state: number,
  ): LoopDocument {
    let document = sent;
    if (typed === null) this.document.setText(yaml, state);
    else if (this.state.typedText !== typed) document = fromSpec(spec ?? {});
    else {
      this.document.setState({ isReadonly: false });
      document = this.replaceBy(fromSpec(spec ?? {}), { label: "Edit text", group: "text" }, typed);
      this.tell({ type: "settled" });
      clearTimeout(this.turnTimer);
    }
    this.tell({ type: "checked", check, text: yaml });
    return document;
  }

  /** The server does not take what was sent: text that does not read, or a loop that it cannot have. */
  private onRefusal(error: ApiError, typed: string | null): void {
    if (typed === null || !UNREADABLE.includes(error.status)) {
      this.tell({ type: "refused", message: errorMessage(error) });
    } else if (this.state.typedText === typed) {
      this.tell({ type: "unreadable", text: typed, diagnostics: findingsOf(error) });
    }
  }

  /** Asks what is wrong with the loop as it is now: its text, or the document where there is none of it. */
  private async look(): Promise<void> {
    const { document, history, text, textState } = this.document.getState();
    const isSaved = !this.isUnsaved && pendingText(this.state) === null;
    if (isSaved && this.state.save !== "conflict") {
      this.tell({ type: "saved", revision: this.state.revision, at: null });
    }
    const isWritten = textState === history.state;
    this.checking = new AbortController();
    this.tell({ type: "checking" });
    const body = isWritten ? { yaml: text } : { spec: toSpec(document) };
    const check = await this.api.check(body, this.checking.signal);
    this.tell({ type: "checked", check, text: isWritten ? text : null });
  }

  private know(version: Version, event: SyncEvent): void {
    this.known = version;
    this.sent = [];
    this.tell(event);
  }

  private onSaved(version: Version, revision: string): void {
    this.know(version, { type: "saved", revision, at: Date.now() });
    this.channel?.postMessage({ id: this.loop.id, revision });
  }

  /** Another version than the one that was known. One that this page sent, or that says the same, is its own. */
  private async meet(theirs: Loop, yaml: string): Promise<void> {
    const isOwn = theirs.yaml === yaml || (await isOfSent(theirs.yaml, this.sent, this.api));
    if (isOwn) this.onSaved(versionOf(theirs), theirs.revision);
    else if (this.state.conflict?.revision !== theirs.revision) this.tell({ type: "met", theirs });
  }

  /** Mine goes over what is there now. False where there is no conflict. */
  private passOver(): boolean {
    const { conflict } = this.state;
    if (conflict === null) return false;
    this.know(versionOf(conflict), { type: "rebased", revision: conflict.revision });
    return true;
  }

  /** Another tab or person may have saved: take it where nothing is lost, else ask. False where the loop is gone. */
  private async lookForNews(): Promise<boolean> {
    const { revision } = this.state;
    if (revision === NOT_SAVED || this.isSaving) return true;
    const hasWork = () => this.isUnsaved || pendingText(this.state) !== null;
    try {
      const theirs = await this.api.fetchLoop(this.loop.id);
      const isOvertaken = this.stopped || this.isSaving || this.state.revision !== revision;
      if (isOvertaken || theirs.revision === revision) return true;
      if (hasWork()) await this.meet(theirs, this.document.getState().text);
      else this.adopt(theirs, "Changed elsewhere");
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return hasWork();
    }
    return true;
  }

  private replaceBy(
    document: LoopDocument,
    options: StoreDispatchOptions,
    text?: string,
  ): LoopDocument {
    const before = this.document.getState().document;
    this.document.dispatch(replaceDocument, { document: this.place(document, before) }, options);
    if (text !== undefined) this.document.setText(text, null);
    return this.document.getState().document;
  }

  private async onFailure(error: unknown): Promise<void> {
    // "Kept in this browser" is said when it is true.
    await this.keepDraft();
    // A change of the graph would be lost to the text once that is read.
    if (this.state.typedText !== null) this.document.setState({ isReadonly: true });
    const message = error instanceof OfflineError ? null : errorMessage(error);
    this.tell({ type: "failed", message, isUnsaved: this.isUnsaved });
    // Not all tabs at once when the server is back.
    this.schedule(this.delays.retry * (0.75 + Math.random() / 2));
  }

  private keepDraftSoon(): void {
    clearTimeout(this.draftTimer);
    this.draftTimer = setTimeout(() => void this.keepDraft(), this.delays.draft);
  }

  private async keepDraft(): Promise<void> {
    clearTimeout(this.draftTimer);
    const brokenText = pendingText(this.state);
    if (brokenText === null && !this.isUnsaved) return this.drafts.remove(this.loop.id);
    const { document, text } = this.document.getState();
    const { revision } = this.state;
    const base = this.known.document ?? undefined;
    const { sent } = this;
    const at = Date.now();
    await this.drafts.write(this.loop.id, { document, text, brokenText, revision, base, sent, at });
  }
}

function findingsOf({ code, message, diagnostics }: ApiError): Diagnostic[] {
  if (diagnostics.length > 0) return [...diagnostics];
  return [{ code, severity: "error", message, fixes: [] }];
}
