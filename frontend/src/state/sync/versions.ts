/** What the server has of an open loop, as far as the page knows, and what it may have besides. */

import type * as routes from "@/api/routes";
import type { Loop } from "@/api/types";
import { fromSpec, toSpec } from "@/document/convert";
import type { LoopDocument } from "@/document/types";
import type { DocumentState } from "../document/store";
import type { Sent } from "./drafts";

/** Enough for a server that is away for a while; the first is the likeliest to have come. */
const MAX_SENT = 20;

export interface Version {
  yaml: string;
  name: string;
  document: LoopDocument | null;
}

export function versionOf({ yaml, name, spec }: Loop): Version {
  return { yaml, name, document: spec ? { ...fromSpec(spec), name } : null };
}

export function isVersion(
  { yaml, name }: Version,
  { text, textState, history, document }: DocumentState,
): boolean {
  return textState === history.state && text === yaml && document.name === name;
}

export function withSent(sent: readonly Sent[], next: Sent): readonly Sent[] {
  const others = sent.filter((one) => one.yaml !== next.yaml || one.document !== next.document);
  return [...others.slice(0, 1), ...others.slice(1).slice(2 - MAX_SENT), next];
}

/** Whether the server made this text of something that was sent without an answer. */
export async function isOfSent(
  text: string,
  sent: readonly Sent[],
  api: Pick<SyncApi, "patchYaml">,
): Promise<boolean> {
  for (const { yaml, document } of sent) {
    if (yaml === text) return true;
    if (document === null) continue;
    const written = await api.patchYaml({ yaml, spec: toSpec(document) });
    if (written.yaml === text) return true;
  }
  return false;
}

export type SyncApi = Pick<
  typeof routes,
  "saveDocument" | "check" | "fetchLoop" | "patchYaml" | "createLoop"
>;
