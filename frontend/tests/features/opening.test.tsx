// @vitest-environment jsdom
/** What opens by a press and comes after the page: the press is not lost, whenever it comes. */
import {
  act,
  cleanup,
  fireEvent,
  render,
  renderHook,
  screen,
  waitFor,
} from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { placed } from "@/ui/Floating";

/** Whether and when chunks arrive, and how often they were fetched. */
const away = vi.hoisted(() => ({ isAway: false, held: Promise.resolve(), fetches: 0 }));

vi.mock("@/ui/loadable", async (importOriginal) => {
  const original = await importOriginal<typeof import("@/ui/loadable")>();
  return {
    ...original,
    loadable: <T,>(load: () => Promise<T>) =>
      original.loadable(async () => {
        away.fetches += 1;
        await away.held;
        if (away.isAway) throw new TypeError("Failed to fetch dynamically imported module");
        return load();
      }),
  };
});

/** Nothing was fetched before: each test has the page to itself. */
async function fresh() {
  vi.resetModules();
  const menu = await import("@/ui/Menu");
  const { Select } = await import("@/ui/Select");
  return { ...menu, Select };
}

function slow(): () => void {
  let arrive = () => {};
  away.held = new Promise((resolve) => {
    arrive = resolve;
  });
  return arrive;
}
const come = (arrive: () => void) => act(async () => arrive());

async function openMenu() {
  const { Menu, MenuItem } = await fresh();
  const onSelect = vi.fn();
  render(
    <>
      <Menu trigger={<button type="button">More</button>}>
        <MenuItem onSelect={onSelect}>First</MenuItem>
        <MenuItem onSelect={() => {}}>Second</MenuItem>
      </Menu>
      <input aria-label="elsewhere" />
    </>,
  );
  return { onSelect, more: screen.getByRole("button", { name: "More" }) };
}

async function openList(isSearched = false) {
  const { Select } = await fresh();
  const onChange = vi.fn();
  const options = ["apple", "beet", "cherry"].map((value) => ({ value, label: value }));
  render(
    <Select
      label="Fruit"
      value="beet"
      options={options}
      isSearched={isSearched}
      onChange={onChange}
    />,
  );
  return { onChange, list: screen.getByRole("combobox", { name: "Fruit" }) };
}

const focused = () => document.activeElement?.textContent;
const key = (element: Element, name: string) => fireEvent.keyDown(element, { key: name });

afterEach(() => {
  cleanup();
  away.isAway = false;
  away.held = Promise.resolve();
  away.fetches = 0;
});

describe("a menu that has not come yet", () => {
  it("opens by the press that was made before", async () => {
    const arrive = slow();
    const { more, onSelect } = await openMenu();
    fireEvent.pointerDown(more, { button: 0 });
    expect(more.getAttribute("aria-busy")).toBe("true");
    expect(screen.getByRole("status").textContent).toBe("Loading…");

    await come(arrive);

    expect(screen.getByRole("menu", { name: "More" }).contains(document.activeElement)).toBe(true);
    expect(screen.queryByRole("status")).toBeNull();
    expect(screen.getByRole("button", { name: "More" })).toBe(more);
    fireEvent.click(screen.getByRole("menuitem", { name: "First" }));
    expect(onSelect).toHaveBeenCalledOnce();
    await waitFor(() => expect(document.activeElement).toBe(more));
  });

  it.each(["Enter", " ", "ArrowDown"])(
    "opens by the key %j, and Escape leads back",
    async (name) => {
      const arrive = slow();
      const { more } = await openMenu();
      key(more, name);

      await come(arrive);

      expect(focused()).toBe("First");
      key(screen.getByText("First"), "Escape");
      expect(screen.queryByRole("menu")).toBeNull();
      await waitFor(() => expect(document.activeElement).toBe(more));
    },
  );

  it.each([
    ["Escape", (more: Element) => key(more, "Escape")],
    ["a second press", (more: Element) => fireEvent.pointerDown(more, { button: 0 })],
    ["going elsewhere", () => screen.getByLabelText("elsewhere").focus()],
  ])("stays closed after %s", async (_, giveUp) => {
    const arrive = slow();
    const { more } = await openMenu();
    fireEvent.pointerDown(more, { button: 0 });
    act(() => void giveUp(more));

    await come(arrive);

    expect(screen.queryByRole("menu")).toBeNull();
    expect(more.getAttribute("aria-expanded")).toBe("false");
  });

  it("says that it does not come, and another press fetches it again", async () => {
    away.isAway = true;
    const { more } = await openMenu();
    key(more, "Enter");
    expect((await screen.findByRole("alert")).textContent).toMatch(/could not be loaded/);
    expect(document.activeElement).toBe(more);

    away.isAway = false;
    await act(async () => void key(more, "Enter"));

    expect(await screen.findByRole("menu")).toBeTruthy();
    expect(focused()).toBe("First");
    expect(screen.queryByRole("alert")).toBeNull();
    expect(away.fetches).toBe(2);
  });
});

describe("a list that has not come yet", () => {
  it("opens by the click that was made before, on what is chosen", async () => {
    const arrive = slow();
    const { list, onChange } = await openList();
    fireEvent.click(list);
    expect(list.getAttribute("aria-busy")).toBe("true");

    await come(arrive);

    expect(screen.getByRole("option", { selected: true }).textContent).toBe("beet");
    expect(focused()).toBe("beet");
    fireEvent.click(screen.getByRole("option", { name: "cherry" }));
    expect(onChange).toHaveBeenCalledExactlyOnceWith("cherry");
    await waitFor(() => expect(document.activeElement).toBe(list));
  });

  it.each(["Enter", " ", "ArrowDown"])(
    "opens by the key %j, and Escape leads back",
    async (name) => {
      const arrive = slow();
      const { list, onChange } = await openList();
      key(list, name);

      await come(arrive);

      expect(focused()).toBe("beet");
      key(screen.getByText("beet", { selector: "[role=option] *" }), "Escape");
      expect(screen.queryByRole("listbox")).toBeNull();
      await waitFor(() => expect(document.activeElement).toBe(list));
      expect(onChange).not.toHaveBeenCalled();
    },
  );

  it("keeps what was typed meanwhile", async () => {
    const arrive = slow();
    const { list } = await openList();
    for (const letter of "ch") key(list, letter);

    await come(arrive);

    expect(focused()).toBe("cherry");
  });

  it("goes on with what was typed in a list that is searched", async () => {
    const arrive = slow();
    const { list } = await openList(true);
    for (const letter of "ch") key(list, letter);

    await come(arrive);

    const line = screen.getByPlaceholderText<HTMLInputElement>("Search");
    expect(document.activeElement).toBe(line);
    expect([line.value, line.selectionStart, line.selectionEnd]).toEqual(["ch", 2, 2]);
  });

  it.each([false, true])("is chosen from by Enter that was early (searched: %j)", async (is) => {
    const arrive = slow();
    const { list, onChange } = await openList(is);
    for (const name of ["c", "h", "Enter"]) key(list, name);

    await come(arrive);

    await waitFor(() => expect(onChange).toHaveBeenCalledExactlyOnceWith("cherry"));
    expect(list.getAttribute("aria-expanded")).toBe("false");
  });

  it("is walked by arrows, the ends and first letters", async () => {
    const { list, onChange } = await openList();
    await act(async () => void key(list, "Enter"));
    const panel = await screen.findByRole("listbox", { name: "Fruit" });
    const walked = ["End", "ArrowUp", "Home", "ArrowUp", "b"].map((name) => {
      key(document.activeElement ?? panel, name);
      return focused();
    });

    expect(walked).toEqual(["cherry", "beet", "apple", "apple", "beet"]);
    key(document.activeElement ?? panel, "Enter");
    expect(onChange).toHaveBeenCalledExactlyOnceWith("beet");
  });

  it("says that it does not come, and another press fetches it again", async () => {
    away.isAway = true;
    const { list } = await openList();
    fireEvent.click(list);
    await screen.findByRole("alert");

    away.isAway = false;
    await act(async () => void fireEvent.click(list));

    expect(await screen.findByRole("listbox")).toBeTruthy();
  });
});

it("what opens is fetched as soon as the drawn page stands idle", async () => {
  vi.useFakeTimers();
  try {
    await fresh();
    const { useDrawn } = await import("@/ui/later");
    expect(away.fetches).toBe(0);

    renderHook(() => useDrawn());
    await act(() => vi.runAllTimersAsync());

    expect(away.fetches).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

describe("a box beside something", () => {
  const page = { width: 1000, height: 600 };
  const box = { width: 200, height: 40 };

  it.each([
    ["bottom", [500, 100], { x: 410, y: 126 }],
    ["bottom", [500, 570], { x: 410, y: 524 }],
    ["top", [500, 10], { x: 410, y: 36 }],
    ["right", [900, 300], { x: 694, y: 290 }],
    ["left", [20, 300], { x: 46, y: 290 }],
    ["bottom", [0, 100], { x: 8, y: 126 }],
    ["bottom", [980, 100], { x: 792, y: 126 }],
  ] as const)("stands at its %s of %j where there is room, and on the page", (side, [x, y], at) => {
    expect(placed(new DOMRect(x, y, 20, 20), box, { side, page })).toEqual(at);
  });
});
