import { ReactFlowProvider } from "@xyflow/react";
import { useEffect } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { OpenLoopProvider, useDocument } from "@/document/context";
import { useDrawn } from "@/ui/later";
import { Empty, Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { useEditorActions } from "./actions/useEditorActions";
import { EditorDialogs } from "./EditorDialogs";
import { EditorLayout } from "./EditorLayout";
import { TopBar } from "./head/TopBar";
import { PageShell } from "./PageShell";
import { useActionKeys } from "./useActionKeys";
import { useNodeInAddress } from "./useNodeInAddress";
import { useOpenedLoop } from "./useOpenedLoop";
import { usePaste } from "./usePaste";

/** The composer with one loop open. */
export function EditorPage({ id }: { id: string }) {
  const { open, error, retry } = useOpenedLoop(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <PageShell title="Loop">
        <Empty
          title="There is no such loop"
          action={
            <Link href="/loops" className="text-accent-text underline">
              All loops
            </Link>
          }
        >
          It may have been deleted.
        </Empty>
      </PageShell>
    );
  }
  if (error && !open)
    return <Failed title="The loop could not be opened" error={error} onRetry={retry} />;
  if (!open) return <AppSkeleton />;
  return (
    <OpenLoopProvider value={open}>
      <ReactFlowProvider>
        <Editor />
      </ReactFlowProvider>
    </OpenLoopProvider>
  );
}

function Editor() {
  const name = useDocument((state) => state.document.name);
  const actions = useEditorActions();
  useActionKeys(actions);
  usePaste();
  useDrawn();
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
