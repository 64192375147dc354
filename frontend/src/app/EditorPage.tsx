import { useEffect } from "react";
import { useLocation, useSearch } from "wouter";
import { isTyping } from "@/state/actions";
import { useDocument, useOpenLoop } from "@/state/document/context";
import { nodeOf } from "@/state/queries";
import { showField } from "@/state/selection";
import { useClipboard } from "@/state/useClipboard";
import { useWindowEvent } from "@/ui/useWindowEvent";
import { EditorDialogs } from "./EditorDialogs";
import { EditorLayout } from "./EditorLayout";
import { TopBar } from "./head/TopBar";
import { LoopPage } from "./LoopPage";
import { useLoopCommands } from "./useActionKeys";

export function EditorPage({ id }: { id: string }) {
  return (
    <LoopPage id={id}>
      <Editor />
    </LoopPage>
  );
}

function Editor() {
  const name = useDocument((state) => state.document.name);
  const actions = useLoopCommands(name);
  usePaste();
  useNodeInAddress();
  return (
    <div className="flex h-full flex-col">
      <TopBar />
      <EditorLayout />
      <EditorDialogs actions={actions} />
    </div>
  );
}

function usePaste(): void {
  const { paste } = useClipboard();
  useWindowEvent("paste", (event) => {
    if (isTyping(event.target)) return;
    event.preventDefault();
    void paste(event.clipboardData?.getData("text/plain") ?? "");
  });
}

/** A node that the address names is selected and brought into view, once; then the address is the loop's own. */
function useNodeInAddress(): void {
  const { store } = useOpenLoop();
  const node = nodeOf(useSearch());
  const [path, navigate] = useLocation();
  useEffect(() => {
    if (node === null) return;
    navigate(path, { replace: true });
    if (!(node in store.getState().document.nodes)) return;
    requestAnimationFrame(() => {
      showField(node, null);
    });
  }, [node, path, navigate, store]);
}
