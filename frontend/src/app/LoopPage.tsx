import { ReactFlowProvider } from "@xyflow/react";
import type { ReactNode } from "react";
import { ApiError } from "@/api/client";
import { OpenLoopProvider } from "@/state/document/context";
import { useOpenedLoop } from "@/state/useOpenedLoop";
import { Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { NotFound } from "./PageShell";

export function LoopPage({ id, children }: { id: string; children: ReactNode }) {
  const { open, error, retry } = useOpenedLoop(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <NotFound title="Loop" href="/loops" all="All loops">
        It may have been deleted.
      </NotFound>
    );
  }
  if (error && !open)
    return <Failed title="The loop could not be opened" error={error} onRetry={retry} />;
  if (!open) return <AppSkeleton />;
  return (
    <OpenLoopProvider value={open}>
      <ReactFlowProvider>{children}</ReactFlowProvider>
    </OpenLoopProvider>
  );
}
