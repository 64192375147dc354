/**
 * Keeps an open loop and the server in step.
 *
 *     edit ──debounce──▶ patch text ──▶ check ──▶ (show problems)
 *                            └────────▶ save If-Match ──▶ saved | conflict | offline (retry)
 *     typed text ──▶ parse ──▶ one undo entry, or broken text and the last good graph
 *
 * A newer edit cancels what an older one asked for. One save runs at a time. Every unsaved state lies
 * in the drafts. Knows nothing of React.
 */

import { ApiError, errorMessage, isAbort, OfflineError } from "@/api/client";
import * as routes from "@/api/routes";
import type { Loop } from "@/api/types";
import { replaceDocument } from "../commands/replaceDocument";
import { fromSpec, toSpec } from "../convert";
import type { DocumentStore } from "../store";
import type { LoopDocument } from "../types";
import { browserDrafts, type Draft, type DraftStore } from "./drafts";
import { createSyncStore, type SyncStore } from "./state";

export type SyncApi = Pick<
  typeof routes,
  "check" | "parseYaml" | "patchYaml" | "dumpSpec" | "saveLoop" | "fetchLoop" | "createLoop"
>;

export interface Delays {
  ask: number;
  draft: number;
  retry: number;
}

/** Gives nodes that came without a place one, and leaves the others where they were. */
export type PlaceNodes = (document: LoopDocument, before: LoopDocument) => LoopDocument;

export const DELAYS: Delays = { ask: 160, draft: 400, retry: 3000 };

const CHANNEL = "coloop.loops";

export class LoopSync {
  readonly store: SyncStore;
  private asking: AbortController | null = null;
  private askTimer: ReturnType<typeof setTimeout> | undefined;
  private draftTimer: ReturnType<typeof setTimeout> | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private isSaving = false;
  private restored: Draft | null = null;
  private savedText: string;
  private savedName: string;
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
    this.seenState = document.getState().history.state;
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
    if (this.restored?.brokenText) void this.applyText(this.restored.brokenText);
    else if (this.isUnsaved()) this.onEdit();
    else this.schedule(0);
  }

  stop(): void {
    this.stopped = true;
    this.unsubscribe();
    this.channel?.close();
    this.asking?.abort();
    clearTimeout(this.askTimer);
    clearTimeout(this.draftTimer);
    clearTimeout(this.retryTimer);
    globalThis.removeEventListener?.("online", this.onOnline);
    globalThis.document?.removeEventListener("visibilitychange", this.onVisible);
    globalThis.removeEventListener?.("pagehide", this.onLeave);
    if (this.isUnsaved()) void this.writeDraft();
  }

  /** Unsaved work of an earlier visit. Its revision decides whether it can be saved over what is there. */
  restore(draft: Draft): void {
    if (draft.brokenText !== null) this.breakText(draft.brokenText, []);
    this.restored = draft;
    this.store.setState({ revision: draft.revision, save: "unsaved" });
    // The draft's text may be older than its document: let the server write it anew.
    this.document.setState({ textState: -1 });
  }

  /** Text as the user types it. */
  async applyText(text: string): Promise<void> {
    this.asking?.abort();
    this.asking = new AbortController();
    clearTimeout(this.askTimer);
    try {
      const { spec, diagnostics, layout } = await this.api.parseYaml(text, this.asking.signal);
      if (spec === null) {
        this.breakText(text, diagnostics);
        return;
      }
      this.mendText();
      const document = this.place(fromSpec(spec, layout), this.document.getState().document);
      this.document
        .getState()
        .dispatch(replaceDocument, { document }, { label: "Edit text", group: "text" });
      this.seenState = this.document.getState().history.state;
      this.document.getState().setText(text, null);
      this.onEdit();
    } catch (error) {
      if (!isAbort(error)) this.store.setState({ checkStatus: "offline" });
    }
  }

  /** Gives up typed text that does not read; the graph is the loop again. */
  discardBrokenText(): void {
    this.mendText();
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
    this.store.setState({ revision: conflict.revision, conflict: null, save: "unsaved" });
    await this.flush();
  }

  takeTheirs(): void {
    const { conflict } = this.store.getState();
    if (conflict) this.take(conflict, "Take the other version");
  }

  async openCopy(): Promise<Loop> {
    const { text, document } = this.document.getState();
    const copy = await this.api.createLoop({ name: `${document.name}-copy`, yaml: text });
    const { conflict } = this.store.getState();
    if (conflict) this.take(conflict, "Take the other version");
    return copy;
  }

  private readonly onOnline = () => this.schedule(0);

  private readonly onVisible = () => {
    if (globalThis.document.visibilityState === "visible") void this.lookForNews();
  };

  /** A page that is closed or loaded again right after an edit does not lose it. */
  private readonly onLeave = () => void this.writeDraft();

  private onEdit(): void {
    const { save } = this.store.getState();
    if (save !== "conflict") this.store.setState({ save: "unsaved" });
    clearTimeout(this.draftTimer);
    this.draftTimer = setTimeout(() => void this.writeDraft(), this.delays.draft);
    this.schedule(this.delays.ask);
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
      const isWritten = await this.writeText(asking.signal);
      const saving = isWritten ? this.save() : Promise.resolve();
      await this.check(isWritten, asking.signal);
      await saving;
    } catch (error) {
      if (isAbort(error)) return;
      // "Kept in this browser" is said when it is true.
      await this.writeDraft();
      if (this.asking === asking) this.onFailure(error);
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
    if (this.store.getState().brokenText) return;
    if (!this.isUnsaved()) {
      if (this.store.getState().save !== "saved") this.store.setState({ save: "saved" });
      return;
    }
    const { text, document } = this.document.getState();
    this.isSaving = true;
    this.store.setState({ save: "saving", saveMessage: null });
    try {
      const { revision } = this.store.getState();
      const loop = await this.api.saveLoop(this.loop.id, revision, {
        name: document.name,
        yaml: text,
      });
      this.onSaved(loop.revision, text, document.name);
    } catch (error) {
      if (error instanceof ApiError && (error.status === 409 || error.status === 412)) {
        await this.meetConflict();
      } else if (error instanceof ApiError) {
        this.store.setState({ save: "refused", saveMessage: errorMessage(error) });
      } else {
        throw error;
      }
    } finally {
      this.isSaving = false;
    }
    if (this.isUnsaved() && this.store.getState().save === "saved") this.onEdit();
  }

  private onSaved(revision: string, text: string, name: string): void {
    this.savedText = text;
    this.savedName = name;
    this.store.setState({ save: "saved", saveMessage: null, savedAt: Date.now(), revision });
    this.channel?.postMessage({ id: this.loop.id, revision });
    if (!this.isUnsaved()) {
      clearTimeout(this.draftTimer);
      void this.drafts.remove(this.loop.id);
    }
  }

  private isUnsaved(): boolean {
    const { text, textState, history, document } = this.document.getState();
    return (
      textState !== history.state || text !== this.savedText || document.name !== this.savedName
    );
  }

  private async meetConflict(): Promise<void> {
    const theirs = await this.api.fetchLoop(this.loop.id);
    this.store.setState({ save: "conflict", conflict: theirs });
  }

  /** Another tab or person may have saved: take it where nothing is lost, else ask. */
  private async lookForNews(): Promise<void> {
    try {
      const theirs = await this.api.fetchLoop(this.loop.id);
      if (this.stopped || theirs.revision === this.store.getState().revision || this.isSaving)
        return;
      if (this.isUnsaved() || this.store.getState().brokenText) {
        this.store.setState({ save: "conflict", conflict: theirs });
      } else {
        this.take(theirs, "Changed elsewhere");
      }
    } catch {
      // The next save will tell.
    }
  }

  private take(theirs: Loop, label: string): void {
    if (theirs.spec === null) return;
    this.mendText();
    this.savedText = theirs.yaml;
    this.savedName = theirs.name;
    const before = this.document.getState().document;
    const document = this.place({ ...fromSpec(theirs.spec), name: theirs.name }, before);
    this.document.getState().dispatch(replaceDocument, { document }, { label });
    this.document.getState().setText(theirs.yaml, null);
    // After the change was noticed as one: what is shown now is what is saved.
    this.store.setState({ revision: theirs.revision, conflict: null, save: "saved" });
    clearTimeout(this.draftTimer);
    void this.drafts.remove(this.loop.id);
    this.schedule(0);
  }

  private breakText(text: string, diagnostics: SyncBroken["diagnostics"]): void {
    this.store.setState({ brokenText: { text, diagnostics } });
    this.document.setState({ isReadonly: true });
    // Nobody else has it.
    void this.writeDraft();
  }

  private mendText(): void {
    if (!this.store.getState().brokenText) return;
    this.store.setState({ brokenText: null });
    this.document.setState({ isReadonly: false });
  }

  private onFailure(error: unknown): void {
    const isOffline = error instanceof OfflineError;
    const { save } = this.store.getState();
    this.store.setState({
      checkStatus: "offline",
      ...(this.isUnsaved() && save !== "conflict"
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

  private async writeDraft(): Promise<void> {
    const { brokenText, revision } = this.store.getState();
    if (!brokenText && !this.isUnsaved()) return;
    const { document, text } = this.document.getState();
    await this.drafts.write(this.loop.id, {
      document,
      text,
      brokenText: brokenText?.text ?? null,
      revision,
      at: Date.now(),
    });
  }
}

type SyncBroken = NonNullable<ReturnType<SyncStore["getState"]>["brokenText"]>;
