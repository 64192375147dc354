// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import { RunsPage } from "@/app/RunsPage";
import { RunBanner } from "@/features/runs/RunBanner";
import { LiveRun } from "@/live/LiveRun";
import { TooltipProvider } from "@/ui/Tooltip";
import { catalog } from "../fixtures/loops";
import { insideLoop } from "../fixtures/open";
import { aRun } from "../fixtures/runs";

const PAGE = 50;
const all = Array.from({ length: 2 * PAGE + 1 }, (_, place) =>
  aRun({ id: `r${place}`, name: `run ${place}`, state: "finished" }),
);
let there = all;

beforeEach(() => {
  there = all;
  vi.spyOn(routes, "fetchCatalog").mockResolvedValue(catalog);
  vi.spyOn(routes, "fetchRuns").mockImplementation(async ({ limit, offset, search }) => {
    const found = there.filter((run) => run.name.includes(search));
    return { items: found.slice(offset, offset + limit), total: found.length };
  });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });

describe("the page of runs", () => {
  const client = () => new QueryClient({ defaultOptions: { queries: { retry: false } } });

  function show(queries = client()) {
    render(
      <QueryClientProvider client={queries}>
        <TooltipProvider>
          <RunsPage />
        </TooltipProvider>
      </QueryClientProvider>,
    );
    return queries;
  }

  it("leads to older runs and back, a page at a time", async () => {
    show();
    expect(await screen.findByText("1 to 50 of 101")).toBeTruthy();
    expect(button("Newer").disabled).toBe(true);

    fireEvent.click(button("Older"));
    expect(await screen.findByText("51 to 100 of 101")).toBeTruthy();
    expect(await screen.findByText("run 50")).toBeTruthy();
    expect(screen.queryByText("run 0")).toBeNull();
    fireEvent.click(button("Older"));
    expect(await screen.findByText("101 to 101 of 101")).toBeTruthy();
    expect(button("Older").disabled).toBe(true);

    fireEvent.click(button("Newer"));
    expect(await screen.findByText("51 to 100 of 101")).toBeTruthy();
  });

  it("begins at the newest where it is filtered", async () => {
    show();
    await screen.findByText("1 to 50 of 101");
    fireEvent.click(button("Older"));
    await screen.findByText("51 to 100 of 101");

    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "run 7" } });

    await waitFor(() =>
      expect(routes.fetchRuns).toHaveBeenLastCalledWith({
        limit: PAGE,
        offset: 0,
        search: "run 7",
      }),
    );
    await waitFor(() => expect(screen.queryByRole("button", { name: "Older" })).toBeNull());
    expect(await screen.findByText("run 70")).toBeTruthy();
  });

  it("steps back when the last run of the last page is gone", async () => {
    const queries = show();
    await screen.findByText("1 to 50 of 101");
    fireEvent.click(button("Older"));
    await screen.findByText("51 to 100 of 101");
    fireEvent.click(button("Older"));
    await screen.findByText("101 to 101 of 101");

    there = all.slice(0, -1);
    await queries.invalidateQueries({ queryKey: ["runs"] });

    expect(await screen.findByText("51 to 100 of 100")).toBeTruthy();
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
