import { useCallback, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError } from "@/api/client";
import { fetchLoop, fetchLoopPresets, fetchLoops } from "@/api/routes";
import { usePreferences } from "@/state/preferences";
import { presetAddress } from "@/state/unsaved";
import { Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";

const QUICK_START = "grpo-arithmetic";

/** Opens the loop that was open last; a new user looks at the quick start. */
export function StartPage() {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const started = useRef(false);

  const go = useCallback(async () => {
    setError(null);
    try {
      navigate(await findLoop(), { replace: true });
    } catch (problem) {
      setError(problem);
    }
  }, [navigate]);

  useEffect(() => {
    if (started.current) return;
    started.current = true;
    void go();
  }, [go]);

  if (error)
    return (
      <main className="flex h-full flex-col items-center justify-center">
        <div>
          <Failed title="coloop could not be opened" error={error} onRetry={() => void go()} />
        </div>
        <Link href="/loops" className="text-accent-text text-sm underline">
          All loops and presets
        </Link>
      </main>
    );
  return <AppSkeleton />;
}

async function findLoop(): Promise<string> {
  const { lastLoop } = usePreferences.getState();
  if (lastLoop) {
    try {
      return addressOf(await fetchLoop(lastLoop));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  const loops = await fetchLoops();
  const newest = loops.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at))[0];
  if (newest) return addressOf(newest);
  const presets = await fetchLoopPresets();
  const first = presets.find((preset) => preset.name === QUICK_START) ?? presets[0];
  if (!first) throw new Error("There is no preset to start with.");
  return presetAddress(first.name);
}

function addressOf(loop: { id: string }): string {
  return `/loops/${loop.id}`;
}
