import { lazy, Suspense } from "react";
import { useFormula } from "./formula";

const FormulaPopover = lazy(() =>
  import("./FormulaPopover").then((module) => ({ default: module.FormulaPopover })),
);

/** The one formula that is shown, beside the number that it is asked for. */
export function FormulaLayer() {
  const isShown = useFormula((state) => state.number !== null);
  return isShown ? (
    <Suspense>
      <FormulaPopover />
    </Suspense>
  ) : null;
}
