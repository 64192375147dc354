import { TrendingDown } from "lucide-react";
import { useMemo } from "react";
import { schedule } from "@/document/phases";
import { formatPlural } from "@/lib/format";
import { isObject } from "@/lib/paths";
import { useDocument, useNodeColors, useOpenLoop, useSync } from "@/state/document/context";
import { setPreferences } from "@/state/preferences";
import { clearSelection, select, useSelection } from "@/state/selection";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { entryText, settingName } from "./phaseText";
import {
  type Place,
  placesOf,
  proportions,
  type Span,
  type Strip,
  type StripItem,
  sharesOf,
  stepsIn,
  stripOf,
} from "./strip";

export function ScheduleStrip() {
  const { catalog } = useOpenLoop();
  const document = useDocument((state) => state.document);
  const plan = useSync((state) => state.check?.plan);
  const colors = useNodeColors();
  const strip = useMemo(() => stripOf(catalog, document, plan), [catalog, document, plan]);
  const phase = useSelection((state) => state.phase);
  const groups = strip.items.filter((item) => item.round !== null);
  const enlarged = groups.find((item) => item.at[0] === phase?.[0]) ?? groups[0];
  const colorOf = (node: string) => colors[node] ?? "var(--muted)";
  const learners = [...strip.learners.keys()];
  const shares = sharesOf(strip);
  return (
    <section
      aria-label="Schedule at a glance"
      className="flex shrink-0 gap-4 overflow-hidden border-line border-t bg-surface px-4 py-2"
      style={{ height: HEAD + Math.max(MIN_HEIGHT, heightOf(strip)) }}
    >
      <div className="flex w-28 shrink-0 flex-col text-xs leading-4">
        <h2 className="font-semibold text-sm leading-5">Schedule</h2>
        <span className="tabular text-muted">
          {strip.isKnown ? formatPlural(strip.steps, "step") : "ends by itself"}
        </span>
        <ul
          className={classes(
            "flex flex-col justify-around overflow-y-auto",
            learners.length > 3 && "text-2xs leading-3",
          )}
          style={{ height: heightOf(strip) }}
        >
          {learners.map((node) => (
            <li key={node} className="flex items-center gap-1.5">
              <i
                aria-hidden="true"
                className="size-2 shrink-0 rounded-[2px]"
                style={{ background: colorOf(node) }}
              />
              <span className="truncate" title={node}>
                {node}
              </span>
            </li>
          ))}
          {learners.length === 0 ? <li className="text-muted">Nothing learns yet.</li> : null}
        </ul>
      </div>
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="flex h-9 shrink-0">
          {strip.items.map((item, index) => (
            <Item key={item.at.join(".")} item={item} share={shares[index] ?? 0} />
          ))}
        </div>
        <div style={{ height: heightOf(strip) }}>
          <Rows strip={strip} colorOf={colorOf} shares={shares} />
        </div>
      </div>
      <Ramps />
      {enlarged?.round ? (
        <OneRound item={enlarged} round={enlarged.round} colorOf={colorOf} />
      ) : null}
    </section>
  );
}

const LINE = 16;
/** Above and below the rows of the learners. */
const HEAD = 54;
const MIN_HEIGHT = 50;
const MAX_HEIGHT = 98;
const ROW_HEIGHT = 24;
const LOW_ROW_HEIGHT = 14;

/** Few learners have high rows, many low ones; more than there is room for are scrolled. */
function heightOf({ learners }: Strip): number {
  const count = Math.max(1, learners.size);
  const low = Math.max(MIN_HEIGHT, count * LOW_ROW_HEIGHT);
  return Math.min(MAX_HEIGHT, low, count * ROW_HEIGHT);
}

function Item({ item, share }: { item: StripItem; share: number }) {
  const chosen = useSelection((state) => state.phase);
  const isChosen = item.at.length > 0 && chosen?.[0] === item.at[0];
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      title={`${item.name}: ${item.length}`}
      className={classes(
        "min-w-0 overflow-hidden border-line border-l pl-1 text-left text-xs leading-4 hover:bg-hover",
        isChosen && "bg-accent-soft",
      )}
      style={{ width: `${share * 100}%` }}
      onClick={() => {
        if (item.at.length > 0) select({ phase: item.at });
        else clearSelection();
      }}
    >
      <span className="sr-only">Choose</span>{" "}
      <span className="block truncate font-semibold">{item.name}</span>{" "}
      <span className="tabular block truncate text-muted">{item.length}</span>
    </button>
  );
}

function Ramps() {
  const { anneal } = useDocument((state) => schedule(state.document));
  const ramps = Array.isArray(anneal) ? anneal.filter(isObject) : [];
  if (ramps.length === 0) return null;
  const paths = ramps.map((ramp) => String(ramp.path));
  return (
    <ul
      aria-label="Values that change"
      className="hidden w-36 shrink-0 flex-col gap-1 overflow-y-auto border-line border-l pl-4 xl:flex"
    >
      {ramps.map((ramp, index) => (
        <li key={index} className="min-w-0">
          <button
            type="button"
            title={entryText(ramp)}
            className="flex h-6 max-w-full items-center gap-1 rounded-full border border-line bg-sunken px-2 text-xs hover:bg-hover"
            onClick={() => select({ entry: { list: "anneal", index } })}
          >
            <TrendingDown size={12} aria-hidden="true" className="shrink-0 text-muted" />
            <span className="truncate">
              {settingName(String(ramp.path), paths)} {String(ramp.from)} → {String(ramp.to)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

interface OneRoundProps {
  item: StripItem;
  round: Strip;
  colorOf: (node: string) => string;
}

function OneRound({ item, round, colorOf }: OneRoundProps) {
  const parts = round.items.map((part) => `${part.name} × ${part.steps}`).join(", ");
  return (
    <div className="hidden w-56 shrink-0 flex-col border-line border-l pl-4 text-xs lg:flex">
      <div className="flex h-6 shrink-0 items-center gap-2">
        <span className="font-semibold">one round</span>
        <span className="tabular min-w-0 flex-1 truncate text-muted">
          {round.steps} {round.steps === 1 ? "step" : "steps"}, {item.rounds} ×
        </span>
        <Button
          size="small"
          look="quiet"
          onClick={() => setPreferences({ dockTab: "schedule", isDockOpen: true })}
        >
          Edit
        </Button>
      </div>
      <div style={{ height: heightOf(round) - LINE }}>
        <Rows strip={round} colorOf={colorOf} hasGaps />
      </div>
      <span className="truncate text-muted" title={parts}>
        {parts}
      </span>
    </div>
  );
}

interface RowsProps {
  strip: Strip;
  colorOf: (node: string) => string;
  shares?: readonly number[];
  hasGaps?: boolean;
}

const WIDTH = 1000;
const ROW = 10;
const PITCH = 14;
/** The least width of a span, so that one step among thousands is seen. */
const THINNEST = 1.5;

function Rows({ strip, colorOf, shares, hasGaps = false }: RowsProps) {
  const rows = [...strip.learners];
  const height = Math.max(1, rows.length) * PITCH;
  const place = placesOf(strip, shares ?? proportions(strip), WIDTH);
  return (
    <svg
      role="img"
      aria-label={describe(strip)}
      className="h-full w-full"
      viewBox={`0 0 ${WIDTH} ${height}`}
      preserveAspectRatio="none"
    >
      {rows.map(([node, spans], row) => (
        <g key={node} transform={`translate(0 ${row * PITCH + (PITCH - ROW) / 2})`}>
          <rect width={WIDTH} height={ROW} fill="var(--sunken)" />
          <path d={pathOf(hasGaps ? steps(spans) : spans, place, hasGaps)} fill={colorOf(node)} />
        </g>
      ))}
      {strip.items.slice(1).map((item) => (
        <rect
          key={item.at.join(".")}
          x={place(item.from)}
          width={THINNEST}
          height={height}
          fill="var(--line)"
        />
      ))}
    </svg>
  );
}

function pathOf(spans: readonly Span[], place: Place, hasGaps: boolean): string {
  return spans
    .map(({ from, to }) => {
      const full = place(to) - place(from);
      const width = Math.max(THINNEST, hasGaps ? full * 0.92 : full);
      return `M${place(from).toFixed(2)} 0h${width.toFixed(2)}v${ROW}h-${width.toFixed(2)}z`;
    })
    .join("");
}

const MAX_STEPS = 60;

function steps(spans: readonly Span[]): readonly Span[] {
  if (stepsIn(spans) > MAX_STEPS) return spans;
  return spans.flatMap(({ from, to }) =>
    Array.from({ length: to - from }, (_, at) => ({ from: from + at, to: from + at + 1 })),
  );
}

function describe({ learners }: Strip): string {
  const words = [...learners].map(([node, spans]) => {
    const count = stepsIn(spans);
    return `${node} learns in ${count} ${count === 1 ? "step" : "steps"}`;
  });
  return words.length > 0 ? words.join(", ") : "Nothing learns yet";
}
