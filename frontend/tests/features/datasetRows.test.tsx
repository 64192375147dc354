// @vitest-environment jsdom
/** Rows of a dataset while its settings are changed. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { RowsView } from "@/features/dataset/DatasetPanel";
import { insideLoop } from "../fixtures/open";

const routes = vi.hoisted(() => ({ previewRows: vi.fn() }));
vi.mock("@/api/routes", async (original) => ({ ...(await original<object>()), ...routes }));

afterEach(cleanup);

it("the last rows that could be read stay, and say so, while a column is being added", async () => {
  const column = { name: "prompt", source: "prompt", is_mapped: false, type: "text", used: [] };
  const page = { total: 1, columns: [column], rows: [{ prompt: "1+1=" }], unread: [] };
  routes.previewRows.mockResolvedValueOnce(page);
  const { store, wrapper: Loop } = insideLoop();
  store.setState({ text: "nodes: {}" });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Loop>
        <RowsView node="problems" />
      </Loop>
    </QueryClientProvider>,
  );
  expect(await screen.findByText("1+1=")).toBeTruthy();

  routes.previewRows.mockRejectedValueOnce(new Error("columns.prompt: is empty"));
  act(() => store.setState({ text: "nodes: {problems: {columns: {prompt: ''}}}" }));

  expect((await screen.findByText(/^From the last valid state/)).textContent).toContain(
    "columns.prompt: is empty",
  );
  expect(screen.getByText("1+1=")).toBeTruthy();
});
