import { ReactFlowProvider } from "@xyflow/react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { OpenLoopProvider } from "@/state/document/context";
import { useOpenedLoop } from "@/state/useOpenedLoop";
import { Empty, Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { PageShell } from "./PageShell";

export function LoopPage({ id, children }: { id: string; children: ReactNode }) {
  const { open, error, retry } = useOpenedLoop(id);
  if (error instanceof ApiError && error.status === 404) {
    return (
      <PageShell title="Loop">
        <Empty
          title="Loop not found"
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
      <ReactFlowProvider>{children}</ReactFlowProvider>
    </OpenLoopProvider>
  );
}
