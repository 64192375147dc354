// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import { expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import { useImport } from "@/features/loops/useImport";

const importLoop = vi.hoisted(() => vi.fn());
vi.mock("@/api/routes", async (original) => ({ ...(await original<object>()), importLoop }));

function opened(files: File[]) {
  const error = vi.spyOn(toast, "error").mockImplementation(() => "");
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useImport(), { wrapper });
  return result.current(files).then(() => error.mock.lastCall);
}

it("a file that is no text is refused in words of its own, and is not sent", async () => {
  const file = new File([new Uint8Array([255, 216, 0, 1])], "photo.jpg", { type: "image/jpeg" });

  const told = await opened([file]);

  expect(told?.[0]).toBe("photo.jpg could not be opened.");
  expect(JSON.stringify(told?.[1])).toContain("This is not a text file.");
  expect(importLoop).not.toHaveBeenCalled();
});

it("what is wrong in a text is told with how to mend it", async () => {
  const diagnostics = [{ message: "a bracket is open", hint: "close its `[`", line: 3 }];
  importLoop.mockRejectedValue(
    new ApiError(422, "invalid", "the text is not a loop", { diagnostics }),
  );

  const told = await opened([new File(["a: ["], "a.yaml")]);

  expect(JSON.stringify(told?.[1])).toContain("Line 3: a bracket is open; close its `[`");
});
