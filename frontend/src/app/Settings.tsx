import { Suspense } from "react";
import { later } from "@/ui/later";

const Inspector = later(() =>
  import("@/features/inspector/Inspector").then((module) => module.Inspector),
);

/** The settings of what is selected; the graph is drawn before them. */
export function Settings() {
  return (
    <Suspense fallback={<div aria-busy="true" className="h-full bg-surface" />}>
      <Inspector />
    </Suspense>
  );
}
