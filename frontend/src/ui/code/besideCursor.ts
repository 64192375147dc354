/** The list of completions stands at the cursor over all else, as wide and as high as it needs to be. */
import type { PrismEditor } from "prism-code-editor";

/** Pixels of a list with all rows that are shown, of one beside what is said of its rows, and to the window's edge. */
const HEIGHT = 220;
const WIDTH = 620;
const EDGE = 8;

/** The library draws it into the text, which cuts it off; it is lifted to where it belongs when it comes or moves. */
export function listBesideCursor(editor: PrismEditor): () => void {
  const { container } = editor;
  if (!editor.extensions.autoComplete) return () => {};
  const place = (changes: MutationRecord[] | Event) => {
    const tip = container.querySelector<HTMLElement>(".pce-tooltip");
    const cursor = editor.extensions.cursor?.element.getBoundingClientRect();
    if (!tip || !cursor) return;
    tip.popover = "manual";
    if (Array.isArray(changes) && changes.some(({ addedNodes }) => [...addedNodes].includes(tip)))
      tip.showPopover();
    const below = window.innerHeight - cursor.bottom - EDGE;
    const isAbove = below < HEIGHT && cursor.top - EDGE > below;
    const left = Math.max(EDGE, Math.min(cursor.left, window.innerWidth - tip.offsetWidth - EDGE));
    const measures = {
      "--tip-top": isAbove ? "auto" : `${cursor.bottom}px`,
      "--tip-bottom": isAbove ? `${window.innerHeight - cursor.top}px` : "auto",
      "--tip-left": `${left}px`,
      "--tip-room": `${isAbove ? cursor.top - EDGE : below}px`,
    };
    for (const [name, measure] of Object.entries(measures)) {
      if (tip.style.getPropertyValue(name) !== measure) tip.style.setProperty(name, measure);
    }
    nameRows(tip);
    const side = window.innerWidth - left > WIDTH ? "-end" : "";
    const className = `pce-ac-wrapper pce-ac-${isAbove ? "top" : "bottom"}${side}`;
    const list = tip.querySelector(".pce-ac-wrapper");
    if (list && list.className !== className) list.className = className;
  };
  const watch = new MutationObserver(place);
  const seen = { childList: true, subtree: true, attributeFilter: ["style", "class"] };
  const overlays = editor.lines[0];
  if (overlays) watch.observe(overlays, seen);
  window.addEventListener("scroll", place, { capture: true, passive: true });
  window.addEventListener("resize", place);
  return () => {
    watch.disconnect();
    window.removeEventListener("scroll", place, { capture: true });
    window.removeEventListener("resize", place);
  };
}

/** Which of how many each row is, from 1, and that rows without anything in them are not there. */
function nameRows(tip: HTMLElement): void {
  const list = tip.querySelector<HTMLElement>("[role=listbox]");
  const rows = [...(list?.querySelectorAll<HTMLElement>("[role=option]") ?? [])];
  const height = rows[0]?.offsetHeight || 1;
  const above = Math.round((Number.parseFloat(list?.style.paddingTop ?? "") || 0) / height);
  const count = Number(rows[0]?.getAttribute("aria-setsize"));
  list?.setAttribute("aria-label", "Completions");
  for (const [at, row] of rows.entries()) {
    row.hidden = at >= count;
    row.setAttribute("aria-posinset", String(above + at + 1));
  }
}
