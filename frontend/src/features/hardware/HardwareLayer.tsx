import { lazy, Suspense } from "react";
import { useHardwareView } from "@/state/dialogs";
import { Loading } from "@/ui/States";

const HardwareView = lazy(() =>
  import("./HardwareView").then((module) => ({ default: module.HardwareView })),
);

export function HardwareLayer() {
  const isOpen = useHardwareView((state) => state.isOpen);
  if (!isOpen) return null;
  return (
    <div className="absolute inset-0 z-35 bg-surface">
      <Suspense fallback={<Loading label="Hardware" />}>
        <HardwareView />
      </Suspense>
    </div>
  );
}
