import { useEffect } from "react";
import { useLocation, useSearch } from "wouter";
import { DATA_FILE } from "@/document/dataFiles";
import { isTyping } from "@/state/actions";
import { useDocument, useMode, useOpenLoop } from "@/state/document/context";
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

/** Parts of a loop, rows for a dataset, or files with rows. */
function usePaste(): void {
  const { paste } = useClipboard();
  const { catalog, store } = useOpenLoop();
  const mode = useMode();
  const put = async (text: string, files: readonly File[]) => {
    if (store.getState().isReadonly) return;
    const { addFile, addRows, chosenDataset } = await import("@/state/addData");
    const where = { node: chosenDataset(catalog, store.getState().document) };
    const open = { catalog, store, mode };
    for (const file of files) await addFile(open, file, where);
    if (files.length === 0 && !(await addRows(open, text, where))) await paste(text);
  };
  useWindowEvent("paste", (event) => {
    if (isTyping(event.target)) return;
    event.preventDefault();
    const files = [...(event.clipboardData?.files ?? [])];
    const data = files.filter(({ name }) => DATA_FILE.test(name));
    void put(event.clipboardData?.getData("text/plain") ?? "", data);
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
