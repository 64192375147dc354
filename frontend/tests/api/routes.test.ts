/** The routes against a real HTTP server: what they send, and what becomes of its answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

interface Sent {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

let server: Server;
let answer: Handler;
let sent: Sent[] = [];
let api: typeof import("@/api/client");
let routes: typeof import("@/api/routes");

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Handler =>
  (response) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url, headers } = request;
    sent.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    answer(response, request);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  // The page asks the server that it comes from.
  vi.stubGlobal("location", { origin: `http://127.0.0.1:${port}` });
  vi.resetModules();
  api = await import("@/api/client");
  routes = await import("@/api/routes");
});

afterEach(() => {
  sent = [];
  api.listenUnauthorised(() => {});
});

afterAll(() => {
  vi.unstubAllGlobals();
  server.closeAllConnections();
  server.close();
});

it("a save says which revision it replaces, or that there is none", async () => {
  answer = json(200, { id: "a b", revision: "2" });

  const edit = { base: "1", yaml: "name: x", strict: true, edit_session: "tab" };
  const saved = await routes.saveDocument("a b", edit);
  await routes.saveDocument("new", { base: null, yaml: "name: x", strict: false });

  expect(saved.revision).toBe("2");
  expect(sent[0]).toMatchObject({ method: "PUT", url: "/api/loops/a%20b/document" });
  expect(JSON.parse(sent[0]?.body ?? "")).toEqual(edit);
  expect(sent[0]?.headers).toMatchObject({
    accept: "application/json",
    "content-type": "application/json",
  });
  expect(JSON.parse(sent[1]?.body ?? "")).toMatchObject({ base: null });
});

it("restoring a version names the revision and sends no body", async () => {
  answer = json(200, { id: "a" });

  await routes.restoreVersion("a", 3, "r9");

  expect(sent[0]).toMatchObject({ method: "POST", url: "/api/loops/a/versions/3/restore" });
  expect(sent[0]?.headers["if-match"]).toBe("r9");
  expect(sent[0]?.body).toBe("");
});

it("a page of many says how many there are; what is null is not asked", async () => {
  answer = json(200, [{ version: 2 }], { "X-Total-Count": "41" });

  const page = await routes.fetchVersions("a", null, 20);
  await routes.fetchRuns({ limit: 5, offset: 10, search: "a&b" });

  expect(page).toEqual({ items: [{ version: 2 }], total: 41 });
  expect(sent.map(({ url }) => url)).toEqual([
    "/api/loops/a/versions?limit=20",
    "/api/runs?limit=5&offset=10&search=a%26b",
  ]);
});

it("a loop's file is text, and an answer without a body is nothing", async () => {
  answer = (response) => {
    response.writeHead(200, { "Content-Type": "application/yaml; charset=utf-8" });
    response.end("name: räksmörgås\n");
  };
  expect(await routes.fetchLoopYaml("a")).toBe("name: räksmörgås\n");

  answer = (response) => response.writeHead(204).end();
  expect(await routes.deleteRun("r")).toBeUndefined();
});

it("an error is the service's code, words and detail", async () => {
  answer = json(409, { code: "loop.conflict", message: "changed elsewhere", detail: { now: "2" } });

  const edit = { base: "1", yaml: "", strict: false };
  const error = await routes.saveDocument("a", edit).catch((failed: unknown) => failed);

  expect(error).toBeInstanceOf(api.ApiError);
  expect(error).toMatchObject({
    name: "ApiError",
    status: 409,
    code: "loop.conflict",
    message: "changed elsewhere",
    detail: { now: "2" },
  });
});

it("an error without the service's words says its status", async () => {
  answer = (response) => response.writeHead(500, "Broken").end("<html>");
  await expect(routes.fetchRun("r")).rejects.toMatchObject({
    status: 500,
    code: "500",
    message: "Broken",
    detail: null,
  });

  answer = json(422, { found: 1 });
  await expect(routes.fetchRun("r")).rejects.toMatchObject({ code: "422", detail: { found: 1 } });
});

it("who is not signed in is asked to be", async () => {
  const asked = vi.fn();
  api.listenUnauthorised(asked);
  answer = json(401, { code: "session.needed", message: "sign in" });

  await expect(routes.fetchLoops()).rejects.toMatchObject({ status: 401 });

  expect(asked).toHaveBeenCalledOnce();
});

it("a server that is down is offline, behind a proxy too", async () => {
  answer = (response) => response.writeHead(502).end();
  await expect(routes.fetchLoops()).rejects.toBeInstanceOf(api.OfflineError);

  answer = (_, request) => request.socket.destroy();
  await expect(routes.fetchLoops()).rejects.toBeInstanceOf(api.OfflineError);
});

it("what is called off ends as such, and is no missing server", async () => {
  const stop = new AbortController();
  answer = () => stop.abort();

  const error = await routes.check({ yaml: "" }, stop.signal).catch((failed: unknown) => failed);

  expect(api.isAbort(error)).toBe(true);
});
