/** What takes the place of a pattern may name its groups: `$1`, `$<name>`, `$&`; `\n` and `\t` are what they are in code. */
import { insertText } from "prism-code-editor/utils";
import type { Surface } from "./surface";

/** The text for one place that a pattern found. */
export function filled(shape: string, found: RegExpExecArray): string {
  const parts = /\$(?:[$&]|(\d\d?)|<([^>]*)>)|\\([nt\\])/g;
  return shape.replace(parts, (all, number, name, sign) => {
    if (sign) return { n: "\n", t: "\t" }[sign as string] ?? sign;
    if (all === "$$") return "$";
    if (all === "$&") return found[0];
    if (number) return +number < found.length ? (found[+number] ?? "") : all;
    return found.groups ? (found.groups[name] ?? "") : all;
  });
}

/** Each place that is shown as found: where it begins and ends. */
function places(editor: Surface): [number, number][] {
  let at = 0;
  return [...(editor.wrapper.querySelector(".pce-matches")?.childNodes ?? [])].flatMap((node) => {
    const from = at;
    at += node.textContent?.length ?? 0;
    return node instanceof Element ? [[from, at]] : [];
  }) as [number, number][];
}

/** Stands before the library's own replacing, which puts in what is written as it is. */
export function replaceGroups(editor: Surface): void {
  const box = editor.extensions.searchWidget?.element;
  const find = box?.querySelector<HTMLInputElement>(".pce-find input");
  const shape = box?.querySelector<HTMLInputElement>(".pce-replace input");
  const [one, all] = box?.querySelectorAll<HTMLElement>(".pce-replace button") ?? [];
  if (!box || !find || !shape || !one || !all) return;
  const isOn = (place: number) =>
    box.querySelectorAll(".pce-options button")[place]?.getAttribute("aria-pressed") === "true";
  const fill = ([from, to]: readonly number[]) => {
    const pattern = new RegExp(find.value, isOn(1) ? "umy" : "umyi");
    pattern.lastIndex = from ?? 0;
    const found = pattern.exec(editor.value);
    return found?.[0].length === (to ?? 0) - (from ?? 0) ? filled(shape.value, found) : shape.value;
  };
  box.addEventListener(
    "click",
    (event) => {
      const found = isOn(0) ? places(editor) : [];
      if (event.target === all && found.length > 0) {
        event.stopPropagation();
        const [first] = found[0] ?? [0];
        const parts = found.map(
          (place, at) => fill(place) + editor.value.slice(place[1], found[at + 1]?.[0] ?? place[1]),
        );
        insertText(editor, parts.join(""), first, found.at(-1)?.[1]);
        all.focus();
      } else if (event.target === one) {
        const [from, to] = editor.getSelection();
        if (!found.some(([start, end]) => start === from && end === to)) return;
        event.stopPropagation();
        insertText(editor, fill([from, to]));
        box.querySelector<HTMLElement>(".pce-next")?.click();
        one.focus();
      }
    },
    true,
  );
}
