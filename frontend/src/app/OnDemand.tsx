import { lazy, Suspense } from "react";
import { useDialogs } from "@/session/dialogs";
import { useExplaining } from "@/session/explaining";
import { useTourState } from "@/session/tour";

// Nobody waits for these before they are asked for.
const GalleryDialog = lazy(() =>
  import("@/features/presets/GalleryDialog").then((module) => ({ default: module.GalleryDialog })),
);
const ExplainSheet = lazy(() =>
  import("@/features/explain/ExplainSheet").then((module) => ({ default: module.ExplainSheet })),
);
const Tour = lazy(() =>
  import("@/features/tour/Tour").then((module) => ({ default: module.Tour })),
);

/** Loaded when first opened. */
export function OnDemand() {
  const isGallery = useDialogs((state) => state.open === "gallery");
  const isExplained = useExplaining((state) => state.code !== null || state.node !== null);
  const isTour = useTourState((state) => state.step !== null);
  return (
    <Suspense fallback={null}>
      {isGallery ? <GalleryDialog /> : null}
      {isExplained ? <ExplainSheet /> : null}
      {isTour ? <Tour /> : null}
    </Suspense>
  );
}
