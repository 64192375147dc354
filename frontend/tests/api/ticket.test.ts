// @vitest-environment jsdom
/** The ticket of this origin: how it comes, where it goes along, and when it goes. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import * as api from "@/api/client";
import * as routes from "@/api/routes";
import { keepTicket, socketProtocols, TICKET_CHANGED, takeToken, ticket } from "@/api/ticket";

const ENTER = readFileSync("public/enter.js", "utf8");
const asked: Request[] = [];
let answers: Response[] = [];

const json = (status: number, body: unknown) => Response.json(body, { status });

beforeEach(() => {
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return answers.shift() ?? json(200, []);
  });
});

afterEach(() => {
  keepTicket(null);
  asked.length = 0;
  answers = [];
  api.listenUnauthorised(() => {});
  vi.unstubAllGlobals();
  history.replaceState(null, "", "/");
});

it("comes for the token and goes along with every request and socket", async () => {
  answers = [json(200, { ticket: "17.ab.cd" })];
  await routes.signIn("secret");
  await routes.fetchLoops();

  expect(asked[0]?.url).not.toContain("secret");
  expect(await asked[0]?.json()).toEqual({ token: "secret" });
  expect(asked[1]?.headers.get("authorization")).toBe("Bearer 17.ab.cd");
  expect(localStorage.getItem("coloop.ticket")).toBe("17.ab.cd");
  expect(document.cookie).toBe("");
  expect(socketProtocols()).toEqual(["coloop.v1", "ticket.17.ab.cd"]);
});

it("without one nothing is sent", async () => {
  await routes.fetchLoops();

  expect(asked[0]?.headers.has("authorization")).toBe(false);
  expect(socketProtocols()).toEqual([]);
});

it("one that is refused is gone, and who is not signed in is asked", async () => {
  const told = vi.fn();
  api.listenUnauthorised(told);
  keepTicket("old");
  answers = [json(401, { code: "session.token_needed", message: "sign in" })];

  await expect(routes.fetchLoops()).rejects.toMatchObject({ status: 401 });

  expect(ticket()).toBeNull();
  expect(told).toHaveBeenCalledOnce();
});

it("one that another tab has brought meanwhile stays", async () => {
  keepTicket("old");
  vi.stubGlobal("fetch", async () => {
    localStorage.setItem("coloop.ticket", "new");
    return json(401, { code: "session.token_needed", message: "sign in" });
  });

  await expect(routes.fetchLoops()).rejects.toMatchObject({ status: 401 });

  expect(ticket()).toBe("new");
});

it("a wrong token leaves the ticket that is there", async () => {
  keepTicket("good");
  answers = [json(401, { code: "session.wrong_token", message: "no" })];

  await expect(routes.signIn("guess")).rejects.toMatchObject({ code: "session.wrong_token" });

  expect(ticket()).toBe("good");
  expect(asked[0]?.headers.has("authorization")).toBe(false);
});

it("signing out voids it at the server, then forgets it", async () => {
  keepTicket("good");
  answers = [new Response(null, { status: 204 })];
  await routes.signOut();

  expect(asked[0]).toMatchObject({ method: "DELETE" });
  expect(asked[0]?.headers.get("authorization")).toBe("Bearer good");
  expect(localStorage.getItem("coloop.ticket")).toBeNull();
});

it("other tabs hear of it", () => {
  const heard = vi.fn();
  addEventListener(TICKET_CHANGED, heard);
  dispatchEvent(new StorageEvent("storage", { key: "coloop.theme", newValue: "x" }));
  expect(heard).not.toHaveBeenCalled();
  dispatchEvent(new StorageEvent("storage", { key: "coloop.ticket", newValue: "x" }));
  removeEventListener(TICKET_CHANGED, heard);

  expect(heard).toHaveBeenCalled();
});

it("requests wait for an exchange that is under way", async () => {
  let end = (_: Response) => {};
  vi.stubGlobal("fetch", (request: Request) => {
    asked.push(request);
    if (request.method !== "POST") return Promise.resolve(json(200, []));
    return new Promise<Response>((resolve) => {
      end = resolve;
    });
  });
  api.waitFor(routes.signIn("pass"));
  const loops = routes.fetchLoops();
  await vi.waitFor(() => expect(asked).toHaveLength(1));
  end(json(200, { ticket: "fresh" }));
  await loops;

  expect(asked.map((one) => one.headers.get("authorization"))).toEqual([null, "Bearer fresh"]);
});

it.each([
  ["/runs?tab=log&token=a%2Bb", "/runs?tab=log", "a+b"],
  ["/runs?tab=log#token=abc", "/runs?tab=log", "abc"],
  ["/#token=abc", "/", "abc"],
  ["/loops#token=abc&at=3", "/loops#at=3", "abc"],
  ["/loops?token=#at", "/loops?token=#at", undefined],
  ["/loops#at", "/loops#at", undefined],
])("the address %s becomes %s at once", (before, after, token) => {
  history.replaceState(null, "", before);
  const entries = history.length;
  new Function(ENTER)();

  expect(location.pathname + location.search + location.hash).toBe(after);
  expect(history.length).toBe(entries);
  expect(takeToken()).toBe(token);
  expect(takeToken()).toBeUndefined();
});
