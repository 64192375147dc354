import type { useLoopPresets } from "@/state/queries";
import { Failed } from "./States";

export function PresetsFailed({ presets }: { presets: ReturnType<typeof useLoopPresets> }) {
  return (
    <Failed
      title="The presets could not be loaded"
      error={presets.error}
      onRetry={() => void presets.refetch()}
    />
  );
}
