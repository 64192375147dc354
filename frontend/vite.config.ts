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

/** Test files that put something else in the place of a module. */
const replacing = readdirSync(resolve(import.meta.dirname, "tests"), {
  encoding: "utf8",
  recursive: true,
})
  .map((name) => `tests/${name.replaceAll("\\", "/")}`)
  .filter((path) => /\.test\.tsx?$/.test(path))
  .filter((path) => readFileSync(resolve(import.meta.dirname, path), "utf8").includes("vi.mock("));

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
    unstubGlobals: true,
    /* Files share modules that were loaded once, but for those that replace some of them. In turn:
     * a worker takes several files only where all that wait for it are of one project. */
    projects: [
      {
        extends: true,
        test: {
          name: "together",
          isolate: false,
          include: ["tests/**/*.test.{ts,tsx}"],
          exclude: replacing,
        },
      },
      {
        extends: true,
        test: { name: "apart", include: replacing, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
