import type { ReactNode } from "react";
import { loadable, usePart } from "./loadable";
import type { MenuChoiceProps, MenuItemProps, MenuProps } from "./menuParts";

export const menuParts = loadable(() => import("./menuParts"));

/** A button that opens a menu. The button is drawn with the page, what opens right after. */
export function Menu(props: MenuProps) {
  const parts = usePart(menuParts);
  return parts ? <parts.Menu {...props} /> : props.trigger;
}

export function MenuItem(props: MenuItemProps) {
  const parts = usePart(menuParts);
  return parts ? <parts.MenuItem {...props} /> : null;
}

export function MenuSeparator() {
  const parts = usePart(menuParts);
  return parts ? <parts.MenuSeparator /> : null;
}

export function MenuLabel(props: { children: ReactNode }) {
  const parts = usePart(menuParts);
  return parts ? <parts.MenuLabel {...props} /> : null;
}

export function MenuChoice(props: MenuChoiceProps) {
  const parts = usePart(menuParts);
  return parts ? <parts.MenuChoice {...props} /> : null;
}
