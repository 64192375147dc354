import { useEffect } from "react";
import { useDocument } from "@/document/context";
import { useEditorActions } from "./actions/useEditorActions";
import { EditorDialogs } from "./EditorDialogs";
import { EditorLayout } from "./EditorLayout";
import { TopBar } from "./head/TopBar";
import { LoopPage } from "./LoopPage";
import { useActionKeys } from "./useActionKeys";
import { useNodeInAddress } from "./useNodeInAddress";
import { usePaste } from "./usePaste";

/** The composer with one loop open. */
export function EditorPage({ id }: { id: string }) {
  return (
    <LoopPage id={id}>
      <Editor />
    </LoopPage>
  );
}

function Editor() {
  const name = useDocument((state) => state.document.name);
  const actions = useEditorActions();
  useActionKeys(actions);
  usePaste();
  useNodeInAddress();
  useEffect(() => {
    document.title = `${name} · coloop`;
  }, [name]);
  return (
    <div className="flex h-full flex-col">
      <TopBar />
      <EditorLayout />
      <EditorDialogs actions={actions} />
    </div>
  );
}
