import { useCallback, useEffect, useRef } from "react";
import { useTourState } from "@/session/tour";
import { Button } from "@/ui/Button";
import { Kbd } from "@/ui/Kbd";
import { STEPS } from "./steps";
import { usePlaces } from "./usePlaces";

/** One step after the other, each pointing at a part of the page; arrow keys, enter and escape work. */
export function Tour() {
  const step = useTourState((state) => state.step);
  if (step === null) return null;
  return <Step key={step} at={step} />;
}

function Step({ at }: { at: number }) {
  const go = useTourState((state) => state.go);
  const { title, text, target, prepare } = STEPS[at] ?? { title: "", text: "", target: "" };
  const panel = useRef<HTMLDivElement>(null);
  const places = usePlaces(target, prepare, panel);
  const isLast = at === STEPS.length - 1;
  const forward = useCallback(() => go(isLast ? null : at + 1), [go, at, isLast]);
  const back = useCallback(() => go(Math.max(0, at - 1)), [go, at]);
  useTourKeys(forward, back);
  // The first step takes the focus from the page; the last gives it back.
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.querySelector<HTMLElement>("[data-forward]")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <>
      {places.ring ? <div aria-hidden="true" className="tour-ring" style={places.ring} /> : null}
      <div
        ref={panel}
        role="dialog"
        aria-label={`Tour, step ${at + 1} of ${STEPS.length}: ${title}`}
        className="fixed z-50 w-80 rounded-3 border border-line bg-raised p-4 shadow-3"
        style={places.panel}
      >
        <p className="text-faint text-xs">
          {at + 1} of {STEPS.length}
        </p>
        <h2 className="font-semibold text-base leading-6">{title}</h2>
        <p className="mt-1 text-sm">{text}</p>
        {isLast ? (
          <p className="mt-2 flex items-center gap-1 text-muted text-xs">
            <Kbd>?</Kbd> shows all shortcuts, <Kbd>Ctrl K</Kbd> all commands.
          </p>
        ) : null}
        <div className="mt-3 flex items-center gap-2">
          <Button size="small" look="quiet" onClick={() => go(null)}>
            {isLast ? "Close" : "Skip"}
          </Button>
          <span className="flex-1" />
          {at > 0 ? (
            <Button size="small" onClick={back}>
              Back
            </Button>
          ) : null}
          <Button size="small" look="primary" data-forward onClick={forward}>
            {isLast ? "Done" : "Next"}
          </Button>
        </div>
      </div>
    </>
  );
}

function useTourKeys(forward: () => void, back: () => void): void {
  const go = useTourState((state) => state.go);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === "ArrowRight") forward();
      else if (event.key === "ArrowLeft") back();
      else if (event.key === "Escape") go(null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    // Before the page's own keys, which would move what is chosen.
    window.addEventListener("keydown", listen, { capture: true });
    return () => window.removeEventListener("keydown", listen, { capture: true });
  }, [forward, back, go]);
}
