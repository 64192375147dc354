// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { LoopPreset, Sketch } from "@/api/types";
import { FILTERS, matches, ordered } from "@/features/presets/filters";
import { Gallery } from "@/features/presets/Gallery";
import { drawSketch, SKETCH_BOX } from "@/graph/sketch";
import { isUnsaved } from "@/state/unsaved";
import { catalog } from "../fixtures/loops";

const SKETCH: Sketch = {
  nodes: [
    { id: "problems", kind: "dataset", learns: false },
    { id: "actor", kind: "actor", learns: true },
    { id: "exact", kind: "reward", learns: false },
  ],
  edges: [
    { source: "problems", target: "actor", teaches: false },
    { source: "actor", target: "exact", teaches: false },
    { source: "exact", target: "actor", teaches: true },
  ],
};

function preset(name: string, traits: Partial<LoopPreset["traits"]> = {}): LoopPreset {
  return {
    name,
    title: `Title of ${name}`,
    description: "",
    runnable_here: traits.needs_gpus !== true,
    traits: {
      lesson: "A lesson",
      tags: [],
      mode: "online",
      learners: ["actor"],
      algorithms: ["GRPO"],
      needs_gpus: false,
      gpus: 0,
      hardware: "cpu",
      seconds: 60,
      is_whole: true,
      ...traits,
    },
    sketch: SKETCH,
  };
}

const ALL = [
  preset("grpo-arithmetic", { tags: ["first loop"] }),
  preset("tango", { tags: ["co-training", "verifier"], seconds: 300 }),
  preset("spin", { mode: "offline", tags: ["self-play"], algorithms: ["SPIN"], seconds: 20 }),
  preset("big", { needs_gpus: true, gpus: 8, hardware: "8xH100", seconds: 9e4 }),
];

function counts(): Record<string, number> {
  const fits = FILTERS.map(({ id, fits }) => [id, ALL.filter(fits).length] as const);
  return Object.fromEntries(fits);
}

function show() {
  vi.spyOn(routes, "fetchLoopPresets").mockResolvedValue(ALL);
  vi.spyOn(routes, "fetchCatalog").mockResolvedValue(catalog);
  const onOpened = vi.fn();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Gallery onOpened={onOpened} />
    </QueryClientProvider>,
  );
  return onOpened;
}

describe("the gallery", () => {
  afterEach(() => {
    cleanup();
    vi.restoreAllMocks();
  });

  it("counts what each filter leaves", () => {
    expect(counts()).toEqual({
      all: 4,
      here: 3,
      co: 1,
      online: 3,
      offline: 1,
      judging: 0,
      gpus: 1,
    });
  });

  it("finds by tag, algorithm, mode and hardware, every word", () => {
    const found = (words: string) => ALL.filter((one) => matches(one, words)).map((p) => p.name);

    expect(found("self-play")).toEqual(["spin"]);
    expect(found("spin offline")).toEqual(["spin"]);
    expect(found("H100")).toEqual(["big"]);
    expect(found("verifier offline")).toEqual([]);
  });

  it("puts the first loop first and full size last, or the shortest first", () => {
    expect(ordered(ALL, "first").map((p) => p.name)).toEqual([
      "grpo-arithmetic",
      "tango",
      "spin",
      "big",
    ]);
    expect(ordered(ALL, "short")[0]?.name).toBe("spin");
  });

  it("narrows, says what is left, and leads out of nothing", async () => {
    show();
    fireEvent.click(await screen.findByRole("button", { name: /Needs GPUs 1/ }));
    expect(screen.getAllByRole("article").map((card) => card.getAttribute("aria-label"))).toEqual([
      "big",
    ]);

    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "tango" } });
    expect(screen.queryAllByRole("article")).toEqual([]);
    fireEvent.click(screen.getByRole("button", { name: "Show all presets" }));
    expect(screen.getAllByRole("article")).toHaveLength(4);
  });

  it("is walked through by arrow keys", async () => {
    show();
    const first = within(await screen.findByRole("article", { name: "grpo-arithmetic" }));
    const button = first.getByRole("button");
    button.focus();

    fireEvent.keyDown(button, { key: "ArrowRight" });
    expect(document.activeElement?.textContent).toBe("Title of tango");
    fireEvent.keyDown(document.activeElement as Element, { key: "End" });
    expect(document.activeElement?.textContent).toBe("Title of big");
  });

  it("opens a preset at an address that the service is not asked about", async () => {
    const onOpened = show();
    const card = within(await screen.findByRole("article", { name: "spin" }));

    fireEvent.click(card.getByRole("button"));

    expect(onOpened).toHaveBeenCalled();
    const id = window.location.pathname.split("/").at(-1) ?? "";
    expect(window.location.search).toBe("?preset=spin");
    expect(isUnsaved(id)).toBe(true);
  });
});

describe("a thumbnail", () => {
  it("draws data from left to right and lessons below all boxes", () => {
    const { boxes, lines, lessons, height } = drawSketch(SKETCH);
    const x = Object.fromEntries(boxes.map((box) => [box.id, box.x]));

    expect(x.problems).toBeLessThan(x.actor ?? 0);
    expect(x.actor).toBeLessThan(x.exact ?? 0);
    expect(lines).toHaveLength(2);
    expect(lessons.map(({ learner }) => learner)).toEqual(["actor"]);
    expect(height).toBeGreaterThan(Math.max(...boxes.map(({ y }) => y)) + SKETCH_BOX);
  });
});
