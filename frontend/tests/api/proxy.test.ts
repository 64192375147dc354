/** The development server passes requests on to the service, signed with its token. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type UserConfig, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

const asked: { url: string | undefined; signed: string | undefined }[] = [];
let service: Server;
let vite: ViteDevServer;
let folder: string;
let address: string;

beforeAll(async () => {
  service = createHttp(({ url, headers }, response) => {
    asked.push({ url, signed: headers.authorization });
    response.end("[]");
  });
  await new Promise<void>((ready) => service.listen(0, "127.0.0.1", ready));
  folder = mkdtempSync(join(tmpdir(), "coloop-proxy-"));
  vi.stubEnv("COLOOP_SERVER", `http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  vi.stubEnv("COLOOP_DATA_DIR", folder);
  vi.stubEnv("COLOOP_TOKEN", undefined);
  const { default: config } = (await import("../../vite.config")) as { default: UserConfig };
  vite = await createServer({
    configFile: false,
    root: folder,
    logLevel: "silent",
    server: { host: "127.0.0.1", port: 0, proxy: config.server?.proxy ?? {} },
  });
  await vite.listen();
  address = vite.resolvedUrls?.local[0]?.replace(/\/$/, "") ?? "";
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await vite.close();
  service.closeAllConnections();
  service.close();
  rmSync(folder, { recursive: true });
});

it("with the token of the data folder, as it is when it asks", async () => {
  writeFileSync(join(folder, "token"), "first\n");
  await fetch(`${address}/api/runs`);
  writeFileSync(join(folder, "token"), "second\n");
  await fetch(`${address}/api/loops?limit=1`);

  expect(asked.splice(0)).toEqual([
    { url: "/api/runs", signed: "Bearer first" },
    { url: "/api/loops?limit=1", signed: "Bearer second" },
  ]);
});

it("with the token that was set, before any other", async () => {
  vi.stubEnv("COLOOP_TOKEN", "set");

  await fetch(`${address}/api/runs`, { headers: { Authorization: "Bearer of-the-page" } });

  expect(asked.splice(0)).toEqual([{ url: "/api/runs", signed: "Bearer set" }]);
});
