/**
 * Brings the loop's text to the server, one save at a time, and notices what others saved. Knows what the
 * server has; reads no text and asks for no check.
 */
import { ApiError, errorMessage } from "@/api/client";
import type { Loop } from "@/api/types";
import { fromSpec } from "../convert";
import type { DocumentStore } from "../store";
import type { LoopDocument } from "../types";
import type { SyncApi } from "./api";
import { type Sent, TAB } from "./drafts";
import { pendingText, type SyncEvent, type SyncState } from "./state";

/** The revision of a loop that the server does not have yet. It gets it with the first change. */
export const NOT_SAVED = "";

interface Version {
  revision: string;
  yaml: string;
  name: string;
  /** What the text says; null where it is not known. */
  document: LoopDocument | null;
}

/** Enough for a server that is away for a while; the first is the likeliest to have come. */
const MOST_SENT = 20;

function withSent(sent: readonly Sent[], next: Sent): readonly Sent[] {
  const others = sent.filter(({ yaml }) => yaml !== next.yaml);
  return [...others.slice(0, 1), ...others.slice(1).slice(2 - MOST_SENT), next];
}

function versionOf({ revision, yaml, name, spec }: Loop): Version {
  return { revision, yaml, name, document: spec ? { ...fromSpec(spec), name } : null };
}

export class Saver {
  private known: Version;
  private doubtful: readonly Sent[] = [];
  private underWay: Promise<void> | null = null;
  /** Whether the server is to have the loop even where nothing was changed. */
  private isWanted = false;

  constructor(
    private readonly loop: Loop,
    private readonly document: DocumentStore,
    private readonly api: Pick<SyncApi, "saveLoop" | "fetchLoop">,
    private readonly state: () => SyncState,
    private readonly tell: (event: SyncEvent) => void,
    /** The server has a new version, by this page. */
    private readonly onSaved: (revision: string) => void,
  ) {
    this.known = versionOf(loop);
  }

  /** What the loop was before the changes that are not saved; null where it is not known. */
  get base(): LoopDocument | null {
    return this.known.document;
  }

  /** What was sent without an answer: the server may have one of these. */
  get sent(): readonly Sent[] {
    return this.doubtful;
  }

  get isBusy(): boolean {
    return this.underWay !== null;
  }

  /** Whether the page has something that the server, as far as it is known, has not. */
  get isUnsaved(): boolean {
    const { text, textState, history, document } = this.document.getState();
    const { revision, yaml, name } = this.known;
    if (this.isWanted && revision === NOT_SAVED) return true;
    if (textState !== history.state || text !== yaml || document.name !== name) return true;
    // What was sent without an answer may be there by now.
    return this.doubtful.some((one) => one.yaml !== yaml || one.document.name !== name);
  }

  /** From now on this is what the server has. */
  know(loop: Loop): void {
    this.known = versionOf(loop);
    this.doubtful = [];
  }

  /** What the unsaved work of an earlier visit came of, and what of it may have been saved. */
  cameOf(document: LoopDocument | null, sent: readonly Sent[]): void {
    this.known = { ...this.known, document };
    this.doubtful = sent;
  }

  /** From now on the server is to have the loop. */
  want(): void {
    this.isWanted = true;
  }

  /** Saves what is there. Where a save is under way it is waited for first. */
  async save(): Promise<void> {
    // How it ends is told to whoever began it.
    while (this.underWay !== null) await this.underWay.catch(() => {});
    if (this.state().save === "conflict" || pendingText(this.state()) !== null) return;
    if (!this.isUnsaved) {
      this.tell({ type: "saved", revision: this.known.revision, at: null });
      return;
    }
    const { text, document } = this.document.getState();
    this.tell({ type: "saving" });
    this.underWay = this.put(text, document).finally(() => {
      this.underWay = null;
    });
    await this.underWay;
  }

  private async put(yaml: string, document: LoopDocument): Promise<void> {
    const { revision } = this.state();
    const { name } = document;
    const before = this.doubtful;
    this.doubtful = withSent(before, { yaml, document });
    try {
      const loop = await this.api.saveLoop(this.loop.id, revision, { name, yaml, sitting: TAB });
      this.take({ revision: loop.revision, yaml, name, document });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // It came and was not taken; what was sent before it may have been.
      if (error.status < 500) this.doubtful = before;
      if (error.status === 409 || error.status === 412) {
        this.meet(await this.api.fetchLoop(this.loop.id), { yaml, document });
      } else {
        this.tell({ type: "refused", message: errorMessage(error) });
      }
    }
  }

  private take(version: Version): void {
    this.known = version;
    this.doubtful = [];
    this.tell({ type: "saved", revision: version.revision, at: Date.now() });
    if (this.isUnsaved) this.tell({ type: "edited" });
    this.onSaved(version.revision);
  }

  /** Another version than the one that was known. One that this page sent, or that says the same, is its own. */
  private meet(theirs: Loop, mine: Sent): void {
    const own = [mine, ...this.doubtful].find(
      (one) => one.yaml === theirs.yaml && one.document.name === theirs.name,
    );
    if (own) {
      const { yaml, document } = own;
      this.take({ revision: theirs.revision, yaml, name: theirs.name, document });
    } else this.tell({ type: "met", theirs });
  }

  /** What others saved: theirs where nothing here would be lost to it, a conflict where something would. */
  async lookForNews(): Promise<Loop | null> {
    const { revision } = this.state();
    if (revision === NOT_SAVED || this.isBusy) return null;
    const theirs = await this.api.fetchLoop(this.loop.id);
    // What this page saves meanwhile is newer than the answer.
    if (this.state().revision !== revision || this.isBusy) return null;
    if (theirs.revision === revision) return null;
    if (!this.isUnsaved && pendingText(this.state()) === null) return theirs;
    const { text, document } = this.document.getState();
    this.meet(theirs, { yaml: text, document });
    return null;
  }
}
