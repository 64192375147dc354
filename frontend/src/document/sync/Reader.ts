/**
 * Makes text and document say the same, and has what they say checked: typed text becomes the document, a
 * changed document becomes text. Saves nothing and waits for nobody.
 */
import { ApiError, errorMessage } from "@/api/client";
import type { ParseAnswer } from "@/api/types";
import { replaceDocument } from "../commands/replaceDocument";
import { fromSpec, toSpec } from "../convert";
import type { DocumentStore } from "../store";
import type { LoopDocument } from "../types";
import type { SyncApi } from "./api";
import { pendingText, type SyncEvent, type SyncState } from "./state";

/** Gives nodes that came without a place one, and leaves the others where they were. */
export type PlaceNodes = (document: LoopDocument, before: LoopDocument) => LoopDocument;

/** Answers that say that a text is no use to the server, now or later. */
const REFUSED = [400, 413, 422];

export class Reader {
  constructor(
    private readonly document: DocumentStore,
    private readonly api: Pick<SyncApi, "check" | "parseYaml" | "patchYaml" | "dumpSpec">,
    private readonly place: PlaceNodes,
    private readonly state: () => SyncState,
    private readonly tell: (event: SyncEvent) => void,
  ) {}

  /** Whether text and document say the same, and nothing else is on the screen. */
  get isAgreed(): boolean {
    const { textState, history } = this.document.getState();
    return pendingText(this.state()) === null && textState === history.state;
  }

  /** Takes what was typed into the document, if it reads. False where more was typed meanwhile. */
  async read(signal: AbortSignal): Promise<boolean> {
    const { typedText } = this.state();
    if (typedText === null) return true;
    const { spec, diagnostics, layout } = await this.parse(typedText, signal);
    if (signal.aborted || this.state().typedText !== typedText) return false;
    if (spec === null) {
      this.tell({ type: "unreadable", text: typedText, diagnostics });
      return true;
    }
    this.document.setState({ isReadonly: false });
    const document = this.place(fromSpec(spec, layout), this.document.getState().document);
    this.document
      .getState()
      .dispatch(replaceDocument, { document }, { label: "Edit text", group: "text" });
    this.document.getState().setText(typedText, null);
    this.tell({ type: "settled" });
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
  async write(signal: AbortSignal): Promise<boolean> {
    const { document, history, text, textState } = this.document.getState();
    if (textState === history.state) return true;
    const spec = toSpec(document);
    let refusal: unknown = null;
    for (const write of [
      () => this.api.patchYaml({ yaml: text, spec }, signal),
      // A text that takes no changes is written anew.
      () => this.api.dumpSpec(spec, signal),
    ]) {
      try {
        const { yaml } = await write();
        this.document.getState().setText(yaml, history.state);
        return true;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 500) throw error;
        refusal = error;
      }
    }
    this.tell({ type: "unwritable", message: errorMessage(refusal) });
    return false;
  }

  /** Asks what is wrong with the loop as it is now: its text, or the document where there is none of it. */
  async check(signal: AbortSignal): Promise<void> {
    this.tell({ type: "checking" });
    const { document, history, text, textState } = this.document.getState();
    const isWritten = textState === history.state;
    const check = await this.api.check(
      isWritten ? { yaml: text } : { spec: toSpec(document) },
      signal,
    );
    this.tell({ type: "checked", check, text: isWritten ? text : null });
  }
}
