import {
  type CSSProperties,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { goToStep, setPreferences, useTourState } from "@/state/preferences";
import { Button } from "@/ui/Button";
import { Kbd } from "@/ui/Kbd";
import { useWindowEvent } from "@/ui/useWindowEvent";

export function Tour() {
  const step = useTourState((state) => state.step);
  if (step === null) return null;
  return <Step key={step} at={step} />;
}

function Step({ at }: { at: number }) {
  const { title, text, target, prepare } = STEPS[at] ?? { title: "", text: "", target: "" };
  const panel = useRef<HTMLDivElement>(null);
  const places = usePlaces(target, prepare, panel);
  const isLast = at === STEPS.length - 1;
  const forward = () => goToStep(isLast ? null : at + 1);
  const back = () => goToStep(Math.max(0, at - 1));
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowRight") forward();
    else if (event.key === "ArrowLeft") back();
    else if (event.key === "Escape") goToStep(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // Before the page's own keys, which would move what is chosen.
  useWindowEvent("keydown", press, { capture: true });
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.querySelector<HTMLElement>("[data-forward]")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <>
      {places.ring ? (
        <div
          aria-hidden="true"
          className="pointer-events-none fixed z-45 rounded-[10px] border-2 border-accent shadow-[0_0_0_4px_var(--accent-soft)]"
          style={places.ring}
        />
      ) : null}
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
          <Button size="small" look="quiet" onClick={() => goToStep(null)}>
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

/** The steps of the tour: what is pointed at, and what is said of it. Places that are not there are passed over. */
interface TourStep {
  title: string;
  text: string;
  target: string;
  prepare?: () => void;
}

export const STEPS: readonly TourStep[] = [
  {
    title: "This is a loop",
    text: "Data flows from left to right: prompts come in, a model generates answers, rewards score them. What a model learns from leads back to it.",
    target: "main",
  },
  {
    title: "A node does one thing",
    text: "It provides rows, generates, scores, compares or learns. Select one to see its settings; drag from a port to connect it to what fits.",
    target: ".react-flow__node",
  },
  {
    title: "Settings of the selection",
    text: "With nothing selected, these are the settings of the whole loop. Simple, advanced and expert decide how many are shown, never which take effect.",
    target: "aside[aria-label='Settings']",
    prepare: () => setPreferences({ isInspectorOpen: true }),
  },
  {
    title: "Who learns when",
    text: "The schedule splits training into phases. Beside it: the plan, problems with their fixes, memory and time, and the loop as YAML.",
    target: "section[aria-label='Lower panel']",
    prepare: () => setPreferences({ isDockOpen: true }),
  },
  {
    title: "Does it fit, and how long does a step take?",
    text: "Memory and step time are estimated after every change, before anything runs.",
    target: "[data-tour='memory']",
  },
  {
    title: "Run it",
    text: "The graph then shows what happens: rates on the edges, which node waits for which, curves, and every generated text.",
    target: "[data-tour='run']",
  },
  {
    title: "Everything by keyboard, and help everywhere",
    text: "All commands are one shortcut away. Problems and alerts have a “Why?”, and a learner shows its formulas.",
    target: "[data-tour='more']",
  },
];

const GAP = 12;
const MARGIN = 12;

interface Places {
  ring: CSSProperties | null;
  panel: CSSProperties;
}

const MIDDLE: CSSProperties = { top: "40%", left: "50%", transform: "translate(-50%, -50%)" };

/** Where the ring round a target is, and the panel beside it, as long as the window stays as it is. */
function usePlaces(
  target: string,
  prepare: (() => void) | undefined,
  panel: RefObject<HTMLElement | null>,
): Places {
  const [places, setPlaces] = useState<Places>({ ring: null, panel: MIDDLE });
  useLayoutEffect(() => {
    prepare?.();
    const measure = () => {
      const box = document.querySelector(target)?.getBoundingClientRect();
      const own = panel.current?.getBoundingClientRect();
      setPlaces(box && own ? beside(box, own) : { ring: null, panel: MIDDLE });
    };
    const frame = requestAnimationFrame(measure);
    window.addEventListener("resize", measure);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener("resize", measure);
    };
  }, [target, prepare, panel]);
  return places;
}

/** Beside the target where there is room: right, left, below, above; else within it. */
function beside(box: DOMRect, own: { width: number; height: number }): Places {
  const ring = { top: box.top, left: box.left, width: box.width, height: box.height };
  const { innerWidth, innerHeight } = window;
  const most = { x: innerWidth - own.width - MARGIN, y: innerHeight - own.height - MARGIN };
  const [x, y] = [clamp(box.left, most.x), clamp(box.top, most.y)];
  const spots: [boolean, number, number][] = [
    [box.right + GAP <= most.x, box.right + GAP, y],
    [box.left - own.width - GAP >= MARGIN, box.left - own.width - GAP, y],
    [box.bottom + GAP <= most.y, x, box.bottom + GAP],
    [box.top - own.height - GAP >= MARGIN, x, box.top - own.height - GAP],
  ];
  const inside = [
    true,
    clamp(box.left + (box.width - own.width) / 2, most.x),
    clamp(box.top + (box.height - own.height) / 3, most.y),
  ] as const;
  const [, left, top] = spots.find(([fits]) => fits) ?? inside;
  return { ring, panel: { left, top } };
}

function clamp(value: number, most: number): number {
  return Math.max(MARGIN, Math.min(value, most));
}
