// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import axe from "axe-core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Combobox } from "@/ui/Combobox";
import { Select } from "@/ui/Select";
import { choose } from "../fixtures/choose";

const MODELS = ["qwen2.5-0.5b", "qwen2.5-7b", "llama-3.2-1b", "gemma-2-2b"].map((value) => ({
  value,
  label: value,
}));
const names = () => screen.getAllByRole("option").map((option) => option.textContent);

afterEach(cleanup);

describe("a list that is searched", () => {
  it("shows what is called by the typed words, and Enter takes the first", () => {
    const onChange = vi.fn();
    render(<Combobox label="Model" value="gemma-2-2b" options={MODELS} onChange={onChange} />);
    fireEvent.keyDown(screen.getByRole("combobox", { name: "Model" }), { key: "ArrowDown" });
    const line = screen.getByPlaceholderText("Search");
    expect(names()).toHaveLength(4);

    fireEvent.change(line, { target: { value: "qwen 7b" } });

    expect(names()).toEqual(["qwen2.5-7b"]);
    fireEvent.keyDown(line, { key: "Enter" });
    expect(onChange).toHaveBeenCalledExactlyOnceWith("qwen2.5-7b");
    expect(screen.queryByRole("listbox")).toBeNull();
  });

  it("is searched by typing while it is closed", () => {
    const onChange = vi.fn();
    render(<Combobox label="Model" value="gemma-2-2b" options={MODELS} onChange={onChange} />);

    for (const key of "lla")
      fireEvent.keyDown(screen.getByLabelText("Model", { selector: "button" }), { key });

    expect(names()).toEqual(["llama-3.2-1b"]);
    fireEvent.keyDown(screen.getByPlaceholderText("Search"), { key: "Enter" });
    expect(onChange).toHaveBeenCalledExactlyOnceWith("llama-3.2-1b");
  });

  it("takes a text of one's own only where that is allowed", () => {
    const onType = vi.fn();
    const props = { label: "Model", value: "", options: MODELS, onChange: () => {} };
    const { rerender } = render(<Combobox {...props} />);
    fireEvent.keyDown(screen.getByRole("combobox"), { key: "Enter" });
    fireEvent.change(screen.getByPlaceholderText("Search"), { target: { value: "mine/one" } });
    expect(screen.queryAllByRole("option")).toEqual([]);

    rerender(<Combobox {...props} onType={onType} />);
    fireEvent.click(screen.getByRole("option", { name: "Use “mine/one”" }));

    expect(onType).toHaveBeenCalledExactlyOnceWith("mine/one");
  });

  it("says which one is chosen, and is sound for assistive technology", async () => {
    render(<Combobox label="Model" value="qwen2.5-7b" options={MODELS} onChange={() => {}} />);
    fireEvent.keyDown(screen.getByRole("combobox"), { key: "Enter" });

    expect(screen.getByRole("option", { checked: true }).textContent).toBe("qwen2.5-7b");
    const rules = { region: { enabled: false }, "color-contrast": { enabled: false } };
    const { violations } = await axe.run(document.body, { rules });
    expect(violations.map(({ id }) => id)).toEqual([]);
  });

  it("stands for a plain list where there are many, and only there", () => {
    const many = Array.from({ length: 12 }, (_, at) => ({ value: `m${at}`, label: `Model ${at}` }));
    const onChange = vi.fn();
    const { rerender } = render(
      <Select label="Model" value="m0" options={many} onChange={onChange} />,
    );
    choose(screen.getByRole("combobox"), "Model 11");
    expect(onChange).toHaveBeenCalledExactlyOnceWith("m11");

    rerender(<Select label="Model" value="m0" options={many.slice(0, 3)} onChange={onChange} />);
    fireEvent.keyDown(screen.getByRole("combobox"), { key: "Enter" });
    expect(screen.queryByPlaceholderText("Search")).toBeNull();
  });
});
