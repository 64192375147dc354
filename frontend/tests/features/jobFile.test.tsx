// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import { JobFileDialog } from "@/features/loops/JobFileDialog";
import { download } from "@/lib/download";
import { showDialog, useDialogs } from "@/state/dialogs";
import { insideLoop } from "../fixtures/open";

const writeJobFile = vi.hoisted(() => vi.fn());
vi.mock("@/api/routes", async (original) => ({ ...(await original<object>()), writeJobFile }));
vi.mock("@/lib/download", () => ({ download: vi.fn() }));

beforeEach(() => {
  writeJobFile.mockReset();
  showDialog("jobFile");
  render(<JobFileDialog />, { wrapper: insideLoop().wrapper });
});

afterEach(() => {
  cleanup();
  showDialog(null);
});

const press = (name: string) => fireEvent.click(screen.getByRole("button", { name }));
const type = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value } });

it("a script is asked for with its walltime and machines, and downloaded", async () => {
  writeJobFile.mockResolvedValue({ name: "small.sbatch", text: "#!/bin/bash\n" });
  type("Walltime", "1-00:00:00");
  type("Machines", "2");

  press("Export");

  await waitFor(() => expect(download).toHaveBeenCalledWith("small.sbatch", "#!/bin/bash\n"));
  expect(writeJobFile).toHaveBeenCalledWith({
    yaml: "",
    target: "slurm",
    nodes: 2,
    time: "1-00:00:00",
    partition: null,
    image: null,
    volume: null,
  });
  expect(useDialogs.getState().open).toBeNull();
});

it("each cluster asks for what it needs", () => {
  fireEvent.click(screen.getByRole("radio", { name: /Kubernetes/ }));

  expect(screen.getByLabelText("Image with Ray and coloop")).toHaveProperty("required", true);
  expect(screen.queryByLabelText("Partition")).toBeNull();
});

it("why there is no file is said in the dialog, which stays", async () => {
  const message = "the plan needs 16 GPUs (main 16), and 1 x 8 = 8 are asked for";
  writeJobFile.mockRejectedValue(new ApiError(422, "export.refused", message, null));

  press("Export");

  expect((await screen.findByRole("alert")).textContent).toContain(message);
  expect(useDialogs.getState().open).toBe("jobFile");
});
