// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { SpecChange } from "@/api/types";
import { ChangedSince } from "@/features/runs/ChangedSince";
import { ForkDialog } from "@/features/runs/ForkDialog";
import { checkpointBefore, whyCheckpoint } from "@/features/runs/fork";
import { aRun } from "../fixtures/runs";

const LR: SpecChange = {
  path: "nodes.actor.training.optimizer.lr",
  where: "actor · training.optimizer.lr",
  words: "actor · training.optimizer.lr: 0.1 → 0.2",
  before: "0.1",
  after: "0.2",
  old: 0.1,
  new: 0.2,
};
const RUN = aRun({ id: "r", name: "mine", loop_id: "loop" });

function show(part: React.ReactNode) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(<QueryClientProvider client={queries}>{part}</QueryClientProvider>);
}

beforeEach(() => {
  vi.spyOn(routes, "fetchCheckpoints").mockResolvedValue({ steps: [10, 20, 40] });
  vi.spyOn(routes, "fetchLoopChanges").mockResolvedValue({ changes: [LR] });
  vi.spyOn(routes, "fetchValueChanges").mockResolvedValue({ changes: [LR] });
  vi.spyOn(routes, "forkRun").mockResolvedValue(aRun({ id: "next" }));
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

describe("the checkpoint of a step", () => {
  it("is the newest at or before it", () => {
    expect(checkpointBefore([10, 20, 40], 40)).toBe(40);
    expect(checkpointBefore([10, 20, 40], 39)).toBe(20);
    expect(checkpointBefore([10, 20, 40], 9)).toBeNull();
  });

  it("is explained where it is another step", () => {
    expect(whyCheckpoint([10, 20, 40], 40)).toBeNull();
    expect(whyCheckpoint([10, 20, 40], 39)).toContain("Step 20 is the nearest checkpoint");
    expect(whyCheckpoint([10, 20, 40], 9)).toContain("the first is of step 10");
  });
});

describe("a fork", () => {
  it("begins with the newest checkpoint, if nothing else is asked", async () => {
    show(<ForkDialog run={RUN} isOpen onClose={() => {}} />);

    fireEvent.click(await screen.findByRole("button", { name: "Fork from step 40" }));

    await waitFor(() => expect(routes.forkRun).toHaveBeenCalled());
    expect(vi.mocked(routes.forkRun).mock.lastCall?.[1]).toMatchObject({ step: 40, set: {} });
  });

  it("from a moment of the past takes the checkpoint before it, and says so", async () => {
    show(<ForkDialog run={RUN} at={39} isOpen onClose={() => {}} />);

    expect(await screen.findByRole("button", { name: "Fork from step 20" })).toBeTruthy();
    expect(screen.getByText(/nearest checkpoint at or before step 39/)).toBeTruthy();
  });

  it("shows what will differ before it starts, as the service says it", async () => {
    const changes = { [LR.path]: 0.2 };
    show(<ForkDialog run={RUN} changes={changes} isOpen onClose={() => {}} />);

    expect(await screen.findByText(LR.words)).toBeTruthy();
    expect(routes.fetchValueChanges).toHaveBeenCalledWith("r", changes);
    expect(screen.queryByRole("radio")).toBeNull();
  });

  it("may run the loop as it is by now", async () => {
    vi.spyOn(routes, "fetchLoop").mockResolvedValue({ yaml: "now" } as never);
    show(<ForkDialog run={RUN} isOpen onClose={() => {}} />);

    fireEvent.click(await screen.findByRole("radio", { name: /As it is now/ }));
    expect(screen.getByText(LR.words)).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Fork from step 40" }));

    await waitFor(() => expect(routes.forkRun).toHaveBeenCalled());
    expect(vi.mocked(routes.forkRun).mock.lastCall?.[1]).toMatchObject({ yaml: "now" });
  });
});

it("what was changed since a run is listed when it is asked for", async () => {
  show(<ChangedSince run={RUN} label="changed since" />);
  expect(routes.fetchLoopChanges).not.toHaveBeenCalled();

  fireEvent.click(screen.getByRole("button", { name: "changed since" }));

  expect(await screen.findByText(LR.words)).toBeTruthy();
});
