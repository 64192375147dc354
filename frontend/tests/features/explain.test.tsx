// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { MathElement } from "@/api/types";
import { loopNameNear, loopNameProblem } from "@/document/names";
import { TourOffer } from "@/features/about/AboutLoop";
import { algorithmsOf, CodePage, Maths } from "@/features/explain/ExplainSheet";
import { STEPS, Tour } from "@/features/tour/Tour";
import { useExplaining } from "@/state/dialogs";
import { goToStep, setPreferences, startTour } from "@/state/preferences";
import { forgetUnsaved, isUnsaved, rememberUnsaved } from "@/state/unsaved";
import { WhyButton } from "@/ui/WhyButton";

function show(content: React.ReactNode): void {
  render(
    <QueryClientProvider
      client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}
    >
      {content}
    </QueryClientProvider>,
  );
}

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

describe("help of a problem", () => {
  it("is asked for by its Why, and shows a wrong and a right example", async () => {
    const asked = vi.spyOn(routes, "fetchCodeHelp").mockResolvedValue({
      code: "numbers.divisibility",
      title: "Two numbers do not divide.",
      means: "Rows are dealt out.",
      matters: "The last part would be smaller.",
      fix: ["Take `32`."],
      example: { language: "yaml", wrong: "mini_batch: 60", right: "mini_batch: 64" },
      source: null,
    });
    show(<WhyButton code="numbers.divisibility" />);
    fireEvent.click(screen.getByRole("button", { name: "Why?" }));
    expect(useExplaining.getState().code).toBe("numbers.divisibility");

    show(<CodePage code="numbers.divisibility" />);

    expect(await screen.findByText("mini_batch: 60")).toBeTruthy();
    expect(screen.getByText("mini_batch: 64")).toBeTruthy();
    expect(asked).toHaveBeenCalledWith("numbers.divisibility");
  });
});

describe("formulas", () => {
  const leaf = (tag: MathElement["tag"], text: string): MathElement => ({
    tag,
    text,
    children: [],
    upright: text.length > 1,
  });
  const fraction: MathElement = {
    tag: "math",
    text: "",
    upright: false,
    children: [
      { tag: "mfrac", text: "", upright: false, children: [leaf("mi", "A"), leaf("mn", "0.28")] },
    ],
  };

  it("are MathML with their line as a name", () => {
    show(<Maths element={fraction} label="A / 0.28" />);

    const math = document.querySelector("math");
    expect(math?.getAttribute("aria-label")).toBe("A / 0.28");
    expect(math?.querySelector("mfrac")?.textContent).toBe("A0.28");
  });

  it("are of every algorithm of a node, in the order of its ports", () => {
    const node = {
      kind: "actor",
      algorithm: { demonstrations: { name: "sft" }, rewards: [{ name: "grpo" }, { name: "rloo" }] },
    };

    const found = algorithmsOf(node, ["rewards", "demonstrations"]);

    expect(found.map(({ port, settings }) => [port, settings.name])).toEqual([
      ["rewards", "grpo"],
      ["rewards", "rloo"],
      ["demonstrations", "sft"],
    ]);
    expect(algorithmsOf({ kind: "actor", algorithm: { name: "dpo" } })[0]?.port).toBeNull();
    expect(algorithmsOf({ kind: "dataset" })).toEqual([]);
  });
});

describe("the tour", () => {
  beforeEach(() => {
    setPreferences({ wasTourOffered: false });
    goToStep(null);
  });

  it("is gone through by keys, there and back, and ends with escape", () => {
    show(<Tour />);
    expect(screen.queryByRole("dialog")).toBeNull();
    act(startTour);
    expect(screen.getByRole("dialog").getAttribute("aria-label")).toContain("step 1 of 7");

    fireEvent.keyDown(window, { key: "ArrowRight" });
    fireEvent.keyDown(window, { key: "ArrowRight" });
    fireEvent.keyDown(window, { key: "ArrowLeft" });
    expect(screen.getByRole("dialog").getAttribute("aria-label")).toContain("step 2 of 7");
    expect(document.activeElement?.textContent).toBe("Next");

    fireEvent.keyDown(window, { key: "Escape" });
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("ends after its last step, and starts again when asked", () => {
    show(<Tour />);
    act(startTour);
    for (const _ of STEPS) fireEvent.keyDown(window, { key: "ArrowRight" });
    expect(screen.queryByRole("dialog")).toBeNull();

    act(startTour);
    expect(screen.getByRole("dialog")).toBeTruthy();
  });

  it("is offered once", () => {
    show(<TourOffer />);
    fireEvent.click(screen.getByRole("button", { name: "No, thanks" }));
    expect(screen.queryByRole("button")).toBeNull();
  });
});

describe("names of loops", () => {
  it("say exactly what is wrong, and what is near", () => {
    expect(loopNameProblem("Bad Name!")).toContain("a space or “!”");
    expect(loopNameProblem("-first")).toContain(
      "must start with a letter or a digit, not with “-”",
    );
    expect(loopNameProblem("  ")).toBe("A loop needs a name.");
    expect(loopNameProblem("grpo-2.5_b")).toBeNull();
    expect(loopNameNear("x y/../z")).toBe("x-y-..-z");
    expect(loopNameProblem(loopNameNear("--a b!"))).toBeNull();
  });
});

describe("loops that are not saved yet", () => {
  it("are remembered until they are", () => {
    rememberUnsaved("a1");
    expect(isUnsaved("a1")).toBe(true);
    forgetUnsaved("a1");
    expect(isUnsaved("a1")).toBe(false);
  });
});
