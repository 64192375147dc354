import { ReactFlowProvider } from "@xyflow/react";
import { useEffect } from "react";
import { OpenLoopProvider, useDocument } from "@/document/context";
import { NodeInspector } from "@/features/inspector/NodeInspector";
import { Studio } from "@/features/studio/Studio";
import { Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { useEditorActions } from "./actions/useEditorActions";
import { EditorDialogs } from "./EditorDialogs";
import { TopBar } from "./head/TopBar";
import { useActionKeys } from "./useActionKeys";
import { useOpenedLoop } from "./useOpenedLoop";

/** The rewards of one loop. */
export function RewardsPage({ id }: { id: string }) {
  const { open, error, retry } = useOpenedLoop(id);
  if (error && !open)
    return <Failed title="The loop could not be opened" error={error} onRetry={retry} />;
  if (!open) return <AppSkeleton />;
  return (
    <OpenLoopProvider value={open}>
      <ReactFlowProvider>
        <Rewards />
      </ReactFlowProvider>
    </OpenLoopProvider>
  );
}

function Rewards() {
  const name = useDocument((state) => state.document.name);
  const actions = useEditorActions();
  useActionKeys(actions);
  useEffect(() => {
    document.title = `Rewards of ${name} · coloop`;
  }, [name]);
  return (
    <div className="flex h-full flex-col">
      <TopBar />
      <main className="flex min-h-0 flex-1">
        <h1 className="sr-only">Rewards of {name}</h1>
        <Studio settings={(node) => <NodeInspector id={node} />} />
      </main>
      <EditorDialogs actions={actions} />
    </div>
  );
}
