import { useEffect, useState } from "react";
import { Floating } from "../Floating";
import type { CodeState } from "./CodeModel";
import { lineAt } from "./folding";
import type { PlacedMark } from "./marks";

interface Tip {
  anchor: Element;
  text: string;
}

/** What is said of the words under the pointer. */
export function MarkTip({ state, area }: { state: CodeState; area: HTMLTextAreaElement }) {
  const [tip, setTip] = useState<Tip | null>(null);
  const { marks } = state;
  useEffect(() => {
    if (marks.length === 0) return;
    const look = (event: PointerEvent) => setTip(tipAt(area, marks, event));
    const hide = () => setTip(null);
    area.addEventListener("pointermove", look);
    area.addEventListener("pointerleave", hide);
    return () => {
      hide();
      area.removeEventListener("pointermove", look);
      area.removeEventListener("pointerleave", hide);
    };
  }, [area, marks]);
  if (!tip) return null;
  return (
    <Floating anchor={tip.anchor} side="bottom" role="tooltip" className="code-tip">
      {tip.text}
    </Floating>
  );
}

function tipAt(
  area: HTMLElement,
  marks: readonly PlacedMark[],
  { clientX, clientY }: PointerEvent,
): Tip | null {
  const painted = area.parentElement?.querySelectorAll("[data-said]") ?? [];
  const under = [...painted].filter((one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    return clientX >= left && clientX <= right && clientY >= top && clientY < bottom;
  });
  const said = under.map((one) => marks[Number(one.getAttribute("data-said"))]?.message ?? "");
  return under[0] ? { anchor: under[0], text: said.join("\n") } : null;
}

/** What is said of the line of the cursor, shown and read aloud when the cursor comes there. */
export function MarksOfLine({ state, isFocused }: { state: CodeState; isFocused: boolean }) {
  const { shown, selected, marks } = state;
  const line = lineAt(shown.starts, selected[1]);
  const here = isFocused ? marks.filter(({ from }) => lineAt(shown.starts, from) === line) : [];
  return (
    <p role="status" className="code-said">
      {here
        .map(({ severity, message }) => `${severity}: ${message.replaceAll("\n", ". ")}`)
        .join(". ")}
    </p>
  );
}
