/**
 * Keeps an open loop and the server in step.
 *
 *     edit ──debounce──▶ patch text ──▶ check ──▶ (show problems)
 *                            └────────▶ save If-Match ──▶ saved | conflict | offline (retry)
 *     typed text ──debounce──▶ parse ──▶ one undo entry, or broken text and the last good graph
 *
 * A newer edit cancels what an older one asked for; typed text waits until it was read. One save runs
 * at a time. Every unsaved state lies in the drafts. Knows nothing of React.
 */

import { ApiError, errorMessage, isAbort, OfflineError } from "@/api/client";
import * as routes from "@/api/routes";
import type { Diagnostic, Loop, ParseAnswer } from "@/api/types";
import { replaceDocument } from "../commands/replaceDocument";
import { fromSpec, toSpec } from "../convert";
import type { DocumentStore } from "../store";
import type { LoopDocument } from "../types";
import { copyLoop } from "./copyLoop";
import { browserDrafts, type Draft, type DraftStore } from "./drafts";
import { createSyncStore, pendingText, type SyncStore } from "./state";

export type SyncApi = Pick<
  typeof routes,
  "check" | "parseYaml" | "patchYaml" | "dumpSpec" | "saveLoop" | "fetchLoop" | "createLoop"
>;

export interface Delays {
  /** After the last key in the text. */
  type: number;
  /** After the last change of the graph. */
  ask: number;
  draft: number;
  retry: number;
}

/** Gives nodes that came without a place one, and leaves the others where they were. */
export type PlaceNodes = (document: LoopDocument, before: LoopDocument) => LoopDocument;

export const DELAYS: Delays = { type: 300, ask: 160, draft: 400, retry: 3000 };

const CHANNEL = "coloop.loops";

/** Answers that say that a text is no use to the server, now or later. */
const REFUSED = [400, 413, 422];

export class LoopSync {
  readonly store: SyncStore;
  private asking: AbortController | null = null;
  private askTimer: ReturnType<typeof setTimeout> | undefined;
  private draftTimer: ReturnType<typeof setTimeout> | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private isSaving = false;
  private savedText: string;
  private savedName: string;
  private savedRevision: string;
  private seenState: number;
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
    this.savedText = loop.yaml;
    this.savedName = loop.name;
    this.savedRevision = loop.revision;
    this.seenState = document.getState().history.state;
    if (loop.spec === null) this.showText(loop.yaml);
  }

  start(): void {
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
    globalThis.document?.addEventListener("visibilitychange", this.onVisible);
    globalThis.addEventListener?.("pagehide", this.onLeave);
    if (this.isUnsaved()) this.onEdit();
    else this.schedule(0);
  }

  stop(): void {
    this.stopped = true;
    this.unsubscribe();
    this.channel?.close();
    // A save under way may still end, and has nobody to tell.
    this.channel = null;
    this.asking?.abort();
    clearTimeout(this.askTimer);
    clearTimeout(this.draftTimer);
    clearTimeout(this.retryTimer);
    globalThis.removeEventListener?.("online", this.onOnline);
    globalThis.document?.removeEventListener("visibilitychange", this.onVisible);
    globalThis.removeEventListener?.("pagehide", this.onLeave);
    void this.keepDraft();
  }

  /** Unsaved work of an earlier visit. Its revision decides whether it can be saved over what is there. */
  restore(draft: Draft): void {
    this.store.setState({ revision: draft.revision, save: "unsaved" });
    if (draft.brokenText === null) this.settleText(null);
    else this.showText(draft.brokenText);
    // The draft's text may be older than its document: let the server write it anew.
    this.document.setState({ textState: -1 });
  }

  /** Text as the user types it. It is kept until the server has read it. */
  typeText(text: string): void {
    if (this.stopped) return;
    this.store.setState({ typedText: text });
    this.markUnsaved();
    this.schedule(this.delays.type);
  }

  /** Gives up typed text that was not read; the graph is the loop again. */
  discardText(): void {
    this.settleText(null);
    void this.keepDraft();
    this.schedule(0);
  }

  checkAgain(): void {
    this.schedule(0);
  }

  /** Saves at once and resolves when the server has the present state, or could not take it. */
  async flush(): Promise<void> {
    clearTimeout(this.askTimer);
    await this.ask();
  }

  async keepMine(): Promise<void> {
    const { conflict } = this.store.getState();
    if (!conflict) return;
    this.knowSaved(conflict.revision, conflict.yaml, conflict.name);
    this.store.setState({ revision: conflict.revision, conflict: null, save: "unsaved" });
    await this.flush();
  }

  takeTheirs(): void {
    const { conflict } = this.store.getState();
    if (conflict) this.take(conflict, "Take the other version");
  }

  async openCopy(): Promise<Loop> {
    const typed = pendingText(this.store.getState());
    if (typed === null && !(await this.writeText(new AbortController().signal))) {
      throw new Error(this.store.getState().saveMessage ?? "The loop could not be written.");
    }
    const { text, document } = this.document.getState();
    const copy = await copyLoop(typed ?? text, `${document.name}-copy`, this.api);
    const { conflict } = this.store.getState();
    if (conflict) this.take(conflict, "Take the other version");
    return copy;
  }

  private readonly onOnline = () => this.schedule(0);

  private readonly onVisible = () => {
    if (globalThis.document.visibilityState === "visible") void this.lookForNews();
    else void this.keepDraft();
  };

  /** A page that is closed or loaded again right after an edit does not lose it. */
  private readonly onLeave = () => void this.keepDraft();

  private onEdit(): void {
    this.markUnsaved();
    this.schedule(this.delays.ask);
  }

  private markUnsaved(): void {
    const { save } = this.store.getState();
    if (save !== "conflict") this.store.setState({ save: "unsaved" });
    clearTimeout(this.draftTimer);
    this.draftTimer = setTimeout(() => void this.keepDraft(), this.delays.draft);
  }

  private schedule(delay: number): void {
    if (this.stopped) return;
    clearTimeout(this.askTimer);
    clearTimeout(this.retryTimer);
    this.askTimer = setTimeout(() => void this.ask(), delay);
  }

  private async ask(): Promise<void> {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    try {
      if (!(await this.readTyped(asking.signal))) return;
      const isWritten = await this.writeText(asking.signal);
      const saving = isWritten ? this.save() : Promise.resolve();
      await this.check(isWritten, asking.signal);
      await saving;
    } catch (error) {
      if (!isAbort(error) && this.asking === asking) await this.onFailure(error);
    }
  }

  /** Takes what was typed into the document, if it reads. False where more was typed since. */
  private async readTyped(signal: AbortSignal): Promise<boolean> {
    const { typedText } = this.store.getState();
    if (typedText === null) return true;
    const { spec, diagnostics, layout } = await this.parse(typedText, signal);
    if (signal.aborted || this.store.getState().typedText !== typedText) return false;
    if (spec === null) {
      this.settleText({ text: typedText, diagnostics });
      // Nobody else has it.
      void this.keepDraft();
      return true;
    }
    this.document.setState({ isReadonly: false });
    const document = this.place(fromSpec(spec, layout), this.document.getState().document);
    this.document
      .getState()
      .dispatch(replaceDocument, { document }, { label: "Edit text", group: "text" });
    this.document.getState().setText(typedText, null);
    this.settleText(null);
    // What the change asked for is done by whoever reads the text.
    clearTimeout(this.askTimer);
    return true;
  }

  private async parse(text: string, signal: AbortSignal): Promise<ParseAnswer> {
    try {
      return await this.api.parseYaml(text, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || !REFUSED.includes(error.status)) throw error;
      const refusal = { code: error.code, severity: "error", message: error.message } as const;
      return { spec: null, layout: null, diagnostics: [{ ...refusal, fixes: [] }] };
    }
  }

  /** Brings the text up to the document. False where the server cannot write it. */
  private async writeText(signal: AbortSignal): Promise<boolean> {
    const { document, history, text, textState } = this.document.getState();
    if (textState === history.state) return true;
    const spec = toSpec(document);
    try {
      const { yaml } = await this.api.patchYaml({ yaml: text, spec }, signal);
      this.document.getState().setText(yaml, history.state);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
    }
    try {
      const { yaml } = await this.api.dumpSpec(spec, signal);
      this.document.getState().setText(yaml, history.state);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      this.store.setState({ save: "refused", saveMessage: errorMessage(error) });
      return false;
    }
  }

  private async check(isWritten: boolean, signal: AbortSignal): Promise<void> {
    this.store.setState({ checkStatus: "checking" });
    const { document, text } = this.document.getState();
    const check = await this.api.check(
      isWritten ? { yaml: text } : { spec: toSpec(document) },
      signal,
    );
    this.store.setState({ checkStatus: "done", check });
  }

  private async save(): Promise<void> {
    if (this.isSaving || this.store.getState().save === "conflict") return;
    if (pendingText(this.store.getState()) !== null) return;
    if (!this.isUnsaved()) {
      const revision = this.savedRevision;
      this.store.setState({ save: "saved", saveMessage: null, revision });
      void this.keepDraft();
      return;
    }
    const { text, document } = this.document.getState();
    this.isSaving = true;
    this.store.setState({ save: "saving", saveMessage: null });
    try {
      await this.put(text, document.name);
    } catch (error) {
      await this.onFailure(error);
    } finally {
      this.isSaving = false;
    }
    if (this.isUnsaved() && this.store.getState().save === "saved") this.onEdit();
  }

  private async put(yaml: string, name: string): Promise<void> {
    const { revision } = this.store.getState();
    try {
      const loop = await this.api.saveLoop(this.loop.id, revision, { name, yaml });
      this.onSaved(loop.revision, yaml, name);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 409 || error.status === 412) {
        this.meet(await this.api.fetchLoop(this.loop.id), yaml, name);
      } else {
        this.store.setState({ save: "refused", saveMessage: errorMessage(error) });
      }
    }
  }

  private onSaved(revision: string, text: string, name: string): void {
    this.knowSaved(revision, text, name);
    const save = pendingText(this.store.getState()) === null ? "saved" : "unsaved";
    const savedAt = Date.now();
    this.store.setState({ save, saveMessage: null, savedAt, revision, conflict: null });
    this.channel?.postMessage({ id: this.loop.id, revision });
    if (!this.isUnsaved()) void this.keepDraft();
  }

  private knowSaved(revision: string, text: string, name: string): void {
    this.savedRevision = revision;
    this.savedText = text;
    this.savedName = name;
  }

  private isUnsaved(): boolean {
    const { text, textState, history, document } = this.document.getState();
    return (
      textState !== history.state || text !== this.savedText || document.name !== this.savedName
    );
  }

  /** Another version than the one that was known. One that says the same is no other. */
  private meet(theirs: Loop, text: string, name: string): void {
    if (theirs.yaml === text && theirs.name === name) {
      this.onSaved(theirs.revision, text, name);
    } else {
      this.store.setState({ save: "conflict", conflict: theirs });
      void this.keepDraft();
    }
  }

  /** Another tab or person may have saved: take it where nothing is lost, else ask. */
  private async lookForNews(): Promise<void> {
    try {
      const theirs = await this.api.fetchLoop(this.loop.id);
      if (this.stopped || theirs.revision === this.store.getState().revision || this.isSaving)
        return;
      if (this.isUnsaved() || pendingText(this.store.getState()) !== null) {
        const { text, document } = this.document.getState();
        this.meet(theirs, text, document.name);
      } else {
        this.take(theirs, "Changed elsewhere");
      }
    } catch {
      // The next save will tell.
    }
  }

  private take(theirs: Loop, label: string): void {
    if (theirs.spec === null) return;
    this.settleText(null);
    this.knowSaved(theirs.revision, theirs.yaml, theirs.name);
    const before = this.document.getState().document;
    const document = this.place({ ...fromSpec(theirs.spec), name: theirs.name }, before);
    this.document.getState().dispatch(replaceDocument, { document }, { label });
    this.document.getState().setText(theirs.yaml, null);
    // After the change was noticed as one: what is shown now is what is saved.
    this.store.setState({ revision: theirs.revision, conflict: null, save: "saved" });
    void this.keepDraft();
    this.schedule(0);
  }

  /** Text that is not the document's: it is read as soon as the loop is kept in step. */
  private showText(text: string): void {
    this.settleText({ text, diagnostics: [] });
    this.store.setState({ typedText: text });
  }

  /** What became of the typed text: it does not read and locks the graph, or it is of no more concern. */
  private settleText(brokenText: { text: string; diagnostics: Diagnostic[] } | null): void {
    this.store.setState({ typedText: null, brokenText, checkStatus: "idle" });
    this.document.setState({ isReadonly: brokenText !== null });
  }

  private async onFailure(error: unknown): Promise<void> {
    // "Kept in this browser" is said when it is true.
    await this.keepDraft();
    const isOffline = error instanceof OfflineError;
    const { save, typedText } = this.store.getState();
    // A change of the graph would be lost to the text once that is read.
    if (typedText !== null) this.document.setState({ isReadonly: true });
    this.store.setState({
      checkStatus: "offline",
      ...((this.isUnsaved() || typedText !== null) && save !== "conflict"
        ? { save: "offline" as const, saveMessage: isOffline ? null : errorMessage(error) }
        : {}),
    });
    clearTimeout(this.retryTimer);
    if (!this.stopped) {
      // Not all tabs at once when the server is back.
      const delay = this.delays.retry * (0.75 + Math.random() / 2);
      this.retryTimer = setTimeout(() => void this.ask(), delay);
    }
  }

  /** Work that is not saved lies in the draft; where all is saved there is none. */
  private async keepDraft(): Promise<void> {
    clearTimeout(this.draftTimer);
    const state = this.store.getState();
    const brokenText = pendingText(state);
    if (brokenText === null && !this.isUnsaved()) return this.drafts.remove(this.loop.id);
    const { document, text } = this.document.getState();
    const { revision } = state;
    await this.drafts.write(this.loop.id, { document, text, brokenText, revision, at: Date.now() });
  }
}
