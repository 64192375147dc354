/// <reference types="vitest/config" />
import { readdirSync, readFileSync } from "node:fs";
import type { ClientRequest } from "node:http";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.COLOOP_SERVER ?? "http://127.0.0.1:8321";

/** The token of the server that is asked, as it was set or as its data folder keeps it. */
function token(): string {
  const folder =
    process.env.COLOOP_DATA_DIR ?? fileURLToPath(new URL("../.coloop", import.meta.url));
  try {
    return process.env.COLOOP_TOKEN ?? readFileSync(resolve(folder, "token"), "utf8").trim();
  } catch {
    return "";
  }
}

const here = fileURLToPath(new URL(".", import.meta.url));
const TESTS = readdirSync(resolve(here, "tests"), { recursive: true, encoding: "utf8" })
  .filter((path) => /\.test\.tsx?$/.test(path))
  .map((path) => `tests/${path}`);
const having = (words: string) =>
  TESTS.filter((path) => readFileSync(resolve(here, path), "utf8").includes(words));
/** Those that read what the service says of a loop: they ask its Python. */
const ASKING = having('/fixtures/spoken"');
/** Those that put something else in a module's place. */
const ALONE = having("vi.mock(").filter((path) => !ASKING.includes(path));

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) },
  },
  build: {
    outDir: "../backend/coloop_server/_static",
    emptyOutDir: true,
    manifest: true,
    target: "es2022",
    // `npm run size` has the budgets, of gzipped files.
    chunkSizeWarningLimit: 1500,
    // Every browser of the target loads modules ahead by itself.
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      "/api": {
        target: server,
        ws: true,
        changeOrigin: true,
        configure: (proxy) => {
          const sign = (request: ClientRequest) =>
            request.setHeader("Authorization", `Bearer ${token()}`);
          proxy.on("proxyReq", sign);
          proxy.on("proxyReqWs", sign);
        },
      },
    },
  },
  test: {
    environment: "node",
    setupFiles: ["tests/setup.ts"],
    testTimeout: 120_000,
    // A page for each file costs more than all tests: only those have one that change modules.
    projects: [
      { extends: true, test: { name: "alone", include: ALONE } },
      {
        extends: true,
        test: { name: "together", include: TESTS, exclude: [...ALONE, ...ASKING], isolate: false },
      },
      { extends: true, test: { name: "asking", include: ASKING, isolate: false } },
    ],
  },
});
