import { createElement, type ReactNode } from "react";
import type { MathElement } from "@/api/types";

/** A formula as MathML, which the browser sets itself; the service sends elements, never markup. */
export function Maths({ element, label }: { element: MathElement; label: string }): ReactNode {
  const attributes = { display: "block", "aria-label": label, className: "maths" };
  return createElement("math", attributes, ...parts(element));
}

function parts({ text, children = [] }: MathElement): ReactNode[] {
  return children.length > 0
    ? children.map((child, index) => <Part key={index} element={child} />)
    : [text];
}

function Part({ element }: { element: MathElement }): ReactNode {
  const attributes = element.upright ? { mathvariant: "normal" } : null;
  return createElement(element.tag, attributes, ...parts(element));
}
