// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type Draft, draftsOf, openTab } from "@/state/sync/drafts";
import { smallLoop } from "../fixtures/loops";

const database = vi.hoisted(() => new Map<string, unknown>());

vi.mock("idb-keyval", () => ({
  get: async (key: string) => database.get(key),
  set: async (key: string, value: unknown) => void database.set(key, value),
  del: async (key: string) => void database.delete(key),
  keys: async () => [...database.keys()],
}));

function aDraft(at: number): Draft {
  return { document: smallLoop(), text: "", brokenText: null, revision: "r1", at };
}

describe("drafts of several tabs", () => {
  beforeEach(() => database.clear());

  it("a tab that has saved leaves the draft of another alone", async () => {
    const [one, two] = [draftsOf("one"), draftsOf("two")];
    await one.write("l", aDraft(1));
    await two.write("l", aDraft(2));

    await two.remove("l");

    expect(await one.read("l")).toEqual(aDraft(1));
  });

  it("a tab finds its own draft, a new one the newest of the same loop", async () => {
    await draftsOf("one").write("l", aDraft(1));
    await draftsOf("two").write("l", aDraft(2));
    await draftsOf("three").write("l2", aDraft(3));

    expect(await draftsOf("one").read("l")).toEqual(aDraft(1));
    expect(await draftsOf("new").read("l")).toEqual(aDraft(2));
  });

  it("what a tab took over is gone when it has saved it", async () => {
    await draftsOf("closed").write("l", aDraft(1));
    const open = draftsOf("open");
    await open.read("l");

    await open.remove("l");

    expect(await draftsOf("next").read("l")).toBeUndefined();
  });
});

describe("the name of a tab", () => {
  it("lives through a reload and is not shared with a copy of the tab", () => {
    sessionStorage.clear();
    const name = openTab();
    const copy = openTab();
    expect(copy).not.toBe(name);

    sessionStorage.setItem("coloop.tab", name);

    expect(openTab()).toBe(name);
    expect(openTab()).not.toBe(name);
  });

  it("is put down when the page goes away", () => {
    const name = openTab();

    window.dispatchEvent(new Event("pagehide"));

    expect(sessionStorage.getItem("coloop.tab")).toBe(name);
  });
});
