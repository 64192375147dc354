/// <reference types="vitest/config" />
import { readFileSync } from "node:fs";
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

const TESTS = "{src,tests}/**/*.test.{ts,tsx}";
const LOADS_VITE = "tests/api/proxy.test.ts";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../backend/coloop_server/_static",
    emptyOutDir: true,
    manifest: true,
    target: "es2022",
    chunkSizeWarningLimit: 600,
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
    // Each file has modules of its own. In a context of one process it has them in half of the time
    // that a process of its own takes; who loads this configuration itself needs such a process.
    projects: [
      {
        extends: true,
        test: { name: "page", pool: "vmForks", include: [TESTS], exclude: [LOADS_VITE] },
      },
      { extends: true, test: { name: "vite", pool: "forks", include: [LOADS_VITE] } },
    ],
  },
});
