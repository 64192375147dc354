import { NodeInspector } from "@/features/inspector/NodeInspector";
import { Studio } from "@/features/studio/Studio";
import { useDocument } from "@/state/document/context";
import { EditorDialogs } from "./EditorDialogs";
import { TopBar } from "./head/TopBar";
import { LoopPage } from "./LoopPage";
import { useLoopCommands } from "./useActionKeys";

export function RewardsPage({ id }: { id: string }) {
  return (
    <LoopPage id={id}>
      <Rewards />
    </LoopPage>
  );
}

function Rewards() {
  const name = useDocument((state) => state.document.name);
  const actions = useLoopCommands(`Rewards of ${name}`);
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
