// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as routes from "@/api/routes";
import type { SpecChange } from "@/api/types";
import { ChangedSince } from "@/features/runs/list/ChangedSince";
import {
  changeables,
  checkpointBefore,
  ForkDialog,
  offered,
  readTyped,
  whyCheckpoint,
} from "@/features/runs/start/ForkDialog";
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
  vi.spyOn(routes, "fetchChanges").mockResolvedValue({ changes: [LR] });
  vi.spyOn(routes, "fetchValueChanges").mockResolvedValue({ changes: [LR] });
  vi.spyOn(routes, "fetchRunSpec").mockResolvedValue({
    yaml: "",
    spec: { nodes: {}, run: { seed: 0 } },
  } as never);
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
    expect(whyCheckpoint([10, 20, 40], 9)).toContain("The earliest is of step 10");
  });
});

describe("what a fork may change", () => {
  it("checkpoints at or before the step come first, the nearest first", () => {
    expect(offered([10, 20, 40, 60], 39)).toEqual([20, 10, 40, 60]);
    expect(offered([630, 660], 412)).toEqual([630, 660]);
    expect(offered([10, 20], undefined)).toEqual([20, 10]);
  });

  it("are the seed, the steps and the learning rates", () => {
    const spec = {
      nodes: { actor: { training: { optimizer: { lr: 0.1 } } }, data: {} },
      schedule: { phases: [{ name: "rl", steps: 5 }] },
      run: { seed: 3 },
    };
    expect(changeables(spec).map(({ path, value }) => [path, value])).toEqual([
      ["run.seed", 3],
      ["schedule.phases.0.steps", 5],
      ["nodes.actor.training.optimizer.lr", 0.1],
    ]);
    expect(readTyped("3e-4")).toBe(0.0003);
    expect(readTyped("grpo")).toBe("grpo");
  });
});

describe("a fork", () => {
  it("says that it repeats its parent, and sends what is changed", async () => {
    show(<ForkDialog run={RUN} isOpen onClose={() => {}} />);
    expect(await screen.findByText(/Unchanged, this fork repeats its parent/)).toBeTruthy();

    fireEvent.change(await screen.findByLabelText("Seed"), { target: { value: "7" } });
    expect(screen.queryByText(/repeats its parent/)).toBeNull();
    fireEvent.change(screen.getByLabelText("Another field, by its path"), {
      target: { value: "nodes.actor.rollout.temperature" },
    });
    fireEvent.click(screen.getByRole("button", { name: "Add field" }));
    fireEvent.change(screen.getByLabelText("nodes.actor.rollout.temperature"), {
      target: { value: "0.7" },
    });
    fireEvent.click(screen.getByRole("button", { name: "Fork from step 40" }));

    await waitFor(() => expect(routes.forkRun).toHaveBeenCalled());
    expect(vi.mocked(routes.forkRun).mock.lastCall?.[1]).toMatchObject({
      set: { "run.seed": 7, "nodes.actor.rollout.temperature": 0.7 },
    });
  });

  it("of a step before which nothing is kept says from where it would begin", async () => {
    show(<ForkDialog run={RUN} at={9} isOpen onClose={() => {}} />);
    expect(await screen.findByText(/No checkpoint of step 9 or before it is kept/)).toBeTruthy();
    expect(screen.getByRole("button", { name: "Fork from step 10" })).toBeTruthy();
  });

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
  expect(routes.fetchChanges).not.toHaveBeenCalled();

  fireEvent.click(screen.getByRole("button", { name: "changed since" }));

  expect(await screen.findByText(LR.words)).toBeTruthy();
});
