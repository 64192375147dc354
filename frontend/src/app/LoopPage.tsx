import { ReactFlowProvider } from "@xyflow/react";
import type { ReactNode } from "react";
import { OpenLoopProvider } from "@/state/document/context";
import { useOpenedLoop } from "@/state/useOpenedLoop";
import { Unopened } from "./PageShell";

export function LoopPage({ id, children }: { id: string; children: ReactNode }) {
  const { open, error, retry } = useOpenedLoop(id);
  if (!open) {
    return (
      <Unopened title="Loop" href="/loops" all="All loops" error={error} onRetry={retry}>
        It may have been deleted.
      </Unopened>
    );
  }
  return (
    <OpenLoopProvider value={open}>
      <ReactFlowProvider>{children}</ReactFlowProvider>
    </OpenLoopProvider>
  );
}
