// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import { RunsPage } from "@/app/RunsPage";
import { RunBanner } from "@/features/runs/live/RunBanner";
import { LiveRun } from "@/live/LiveRun";
import { catalog } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aRun } from "../fixtures/runs";

const PAGE = 50;
/** What the service gives at once here: few rows are quickly drawn. */
const GIVEN = 7;
const all = Array.from({ length: 2 * GIVEN + 1 }, (_, place) =>
  aRun({ id: `r${place}`, name: `run ${place}`, state: "finished" }),
);
let there = all;

beforeEach(() => {
  there = all;
  vi.spyOn(routes, "fetchCatalog").mockResolvedValue(catalog);
  vi.spyOn(routes, "fetchRunTags").mockResolvedValue(["baseline"]);
  vi.spyOn(routes, "fetchRuns").mockImplementation(async (query) => {
    const found = there.filter(
      (run) =>
        run.name.includes(query.search ?? "") &&
        (!query.state || run.state === query.state) &&
        (!query.tag || run.tags.includes(query.tag)),
    );
    const start = Number(query.cursor ?? 0);
    const end = start + GIVEN;
    const page = { items: found.slice(start, end), total: found.length };
    return end < found.length ? { ...page, next: String(end) } : page;
  });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const lastAsked = () =>
  vi
    .mocked(routes.fetchRuns)
    .mock.calls.map(([query]) => query)
    .findLast((query) => query.limit === PAGE);

function show() {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={queries}>
      <RunsPage />
    </QueryClientProvider>,
  );
  return queries;
}

describe("the page of runs", () => {
  it("leads to further runs and back, a page at a time", async () => {
    show();
    expect(await screen.findByText("1 to 7 of 15")).toBeTruthy();
    expect(button("Previous").disabled).toBe(true);

    fireEvent.click(button("Next"));
    expect(await screen.findByText("8 to 14 of 15")).toBeTruthy();
    expect(await screen.findByText("run 9")).toBeTruthy();
    expect(screen.queryByText("run 0")).toBeNull();
    await waitFor(() => expect(button("Next").disabled).toBe(false));
    fireEvent.click(button("Next"));
    expect(await screen.findByText("15 to 15 of 15")).toBeTruthy();
    await waitFor(() => expect(button("Next").disabled).toBe(true));

    fireEvent.click(button("Previous"));
    expect(await screen.findByText("8 to 14 of 15")).toBeTruthy();
  });

  it("begins anew where it is filtered", async () => {
    show();
    await screen.findByText("1 to 7 of 15");
    fireEvent.click(button("Next"));
    await screen.findByText("8 to 14 of 15");

    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "run 1" } });

    await waitFor(() =>
      expect(lastAsked()).toEqual({ limit: PAGE, sort: "created", search: "run 1" }),
    );
    await waitFor(() => expect(screen.queryByRole("button", { name: "Next" })).toBeNull());
    expect(await screen.findByText("run 14")).toBeTruthy();
  });

  it("offers all runs where none matches", async () => {
    show();
    await screen.findByText("run 0");
    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "nothing" } });

    fireEvent.click(await screen.findByRole("button", { name: "Show all runs" }));

    expect(await screen.findByText("run 0")).toBeTruthy();
  });

  it("narrows to a tag that is pressed", async () => {
    there = [aRun({ id: "a", name: "one", tags: ["baseline"] }), aRun({ id: "b", name: "two" })];
    show();

    fireEvent.click(await screen.findByRole("button", { name: "baseline" }));

    await waitFor(() => expect(lastAsked()?.tag).toBe("baseline"));
    await waitFor(() => expect(screen.queryByText("two")).toBeNull());
  });

  it("compares two to six runs", async () => {
    show();
    await screen.findByText("run 0");
    for (let place = 0; place < 6; place += 1)
      fireEvent.click(screen.getByRole("checkbox", { name: `Choose run ${place}` }));

    const chosen = screen.getByRole("region", { name: "Chosen runs" });
    expect(chosen.textContent).toContain("6 chosen");
    const seventh = screen.getByRole<HTMLInputElement>("checkbox", { name: "Choose run 6" });
    expect([seventh.disabled, seventh.title]).toEqual([true, "6 runs are chosen, the maximum"]);
    fireEvent.click(button("Compare"));
    expect(location.pathname + location.search).toBe("/runs/compare?runs=r0,r1,r2,r3,r4,r5");
  });

  it("says that one run is not enough to compare, and deletes none that goes on", async () => {
    there = [aRun({ id: "a", name: "one", state: "running" })];
    show();
    fireEvent.click(await screen.findByRole("checkbox", { name: "Choose one" }));

    expect(button("Compare").getAttribute("aria-disabled")).toBe("true");
    expect(button("Delete…").getAttribute("aria-disabled")).toBe("true");
  });

  it("counts alerts that nobody took note of", async () => {
    const alert = {
      code: "x",
      node: null,
      metric: null,
      state: "raised" as const,
      level: "warning" as const,
      message: "It is slow.",
      hint: null,
      step: 1,
      seq: 1,
      raised_at: null,
      told: 1,
      cleared_at: null,
      acknowledged_at: null,
    };
    const noted = { ...alert, seq: 2, acknowledged_at: "2026-01-01T00:00:00Z" };
    there = [aRun({ alerts: [alert, { ...alert, state: "cleared" }, noted] })];
    show();

    expect((await screen.findByText("1 alert")).title).toBe("It is slow.");
  });
});

describe("the queue", () => {
  const waiting = ["a", "b", "c"].map((name, place) =>
    aRun({ id: name, name, state: "queued", place: place + 1 }),
  );

  it("moves runs before one another and says what cannot be moved", async () => {
    there = waiting;
    const move = vi.spyOn(routes, "moveRun").mockResolvedValue(aRun());
    show();

    fireEvent.click(await screen.findByRole("button", { name: "Start b earlier" }));
    await waitFor(() => expect(move).toHaveBeenLastCalledWith("b", "a"));
    await waitFor(() =>
      expect(button("Start a later").getAttribute("aria-disabled")).not.toBe("true"),
    );
    fireEvent.click(button("Start a later"));
    await waitFor(() => expect(move).toHaveBeenLastCalledWith("a", "c"));
    fireEvent.click(button("Start b later"));
    await waitFor(() => expect(move).toHaveBeenLastCalledWith("b", null));
    expect(button("It is already the next one").getAttribute("aria-disabled")).toBe("true");
    expect(button("It is already the last one").getAttribute("aria-disabled")).toBe("true");
  });

  it("takes runs out, and is not there while nothing waits", async () => {
    there = waiting;
    const stop = vi.spyOn(routes, "stopRun").mockImplementation(async () => {
      there = [];
      return aRun();
    });
    show();

    fireEvent.click(await screen.findByRole("button", { name: "Remove b from the queue" }));

    await waitFor(() => expect(stop).toHaveBeenCalledWith("b"));
    await waitFor(() => expect(screen.queryByRole("region", { name: "Queue" })).toBeNull());
  });
});

describe("the strip over a run", () => {
  function strip(change: Parameters<typeof aRun>[0]) {
    const live = new LiveRun("r");
    live.setRun(aRun(change));
    render(<RunBanner />, { wrapper: insideLoop({ live }).wrapper });
  }

  it("warns of what goes wrong while the run goes on", () => {
    strip({ state: "running", message: "The cluster does not answer." });

    expect(screen.getByRole("status").textContent).toBe("The cluster does not answer.");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("is not there where nothing is wrong, nor for what a run said that is over", () => {
    strip({ state: "running" });
    strip({ state: "finished", message: "over" });

    expect(screen.queryByRole("status")).toBeNull();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("says why a run failed, and where", () => {
    strip({
      state: "failed",
      error: { code: "x", message: "No memory.", hint: "Take less.", node: "actor" },
    });

    expect(screen.getByRole("alert").textContent).toContain("No memory.Take less.");
    expect(button("Show actor")).toBeTruthy();
  });
});
