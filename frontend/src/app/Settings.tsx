import { lazy, Suspense } from "react";
import { Loading } from "@/ui/States";

const Inspector = lazy(() =>
  import("@/features/inspector/Inspector").then((module) => ({ default: module.Inspector })),
);

export function Settings() {
  return (
    <Suspense fallback={<SettingsOutline />}>
      <Inspector />
    </Suspense>
  );
}

export function SettingsOutline() {
  return (
    <div className="h-full overflow-hidden bg-surface">
      <Loading label="Loading the settings" rows={6} />
    </div>
  );
}
