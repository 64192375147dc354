import { Slot } from "radix-ui";
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useId,
  useRef,
  useState,
} from "react";
import { fetchLater } from "./later";
import { loadable, usePart } from "./loadable";
import type { MenuChoiceProps, MenuItemProps } from "./menuParts";
import { Opening } from "./Opening";

export const menuParts = loadable(() => import("./menuParts"));
fetchLater(menuParts.bring);

interface MenuProps {
  trigger: ReactNode;
  align?: "start" | "end";
  /** Where something else than the trigger opens it, such as what is also dragged. */
  isOpen?: boolean;
  onOpenChange?: (isOpen: boolean) => void;
  /** Gives the focus back, where the trigger has none. */
  onClosed?: () => void;
  children: ReactNode;
}

const OPEN_KEYS = ["Enter", " ", "ArrowDown"];

/** A button that opens a menu. The button is drawn with the page, what opens comes right after. */
export function Menu(props: MenuProps) {
  const { trigger, align = "start", isOpen: held, onOpenChange, onClosed, children } = props;
  const [isOpenHere, setOpenHere] = useState(false);
  const [isByKey, setByKey] = useState(false);
  const { part, hasFailed } = usePart(menuParts);
  const anchor = useRef<HTMLElement>(null);
  const id = useId();
  const isOpen = held ?? isOpenHere;

  const open = (opens: boolean) => {
    setOpenHere(opens);
    onOpenChange?.(opens);
  };
  const press = (event: KeyboardEvent<HTMLElement> | PointerEvent<HTMLElement>, byKey: boolean) => {
    // Else a press by the pointer would take the focus back from what opens.
    event.preventDefault();
    if (event.currentTarget.matches(":disabled, [aria-disabled=true]")) return;
    event.currentTarget.focus();
    setByKey(byKey);
    if (isOpen && hasFailed) void menuParts.bring();
    else open(!isOpen);
  };
  return (
    <>
      <Slot.Root
        ref={anchor}
        id={`${id}trigger`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen && part ? id : undefined}
        aria-busy={(isOpen && !part && !hasFailed) || undefined}
        data-state={isOpen ? "open" : "closed"}
        onPointerDown={(event) => {
          if (event.button === 0 && !event.ctrlKey) press(event, false);
        }}
        onKeyDown={(event) => {
          if (OPEN_KEYS.includes(event.key)) press(event, true);
        }}
      >
        {trigger}
      </Slot.Root>
      {isOpen ? (
        <Opening from={menuParts} anchor={anchor} onClose={() => open(false)}>
          {({ MenuPanel }) => (
            <MenuPanel
              id={id}
              anchor={anchor}
              align={align}
              isByKey={isByKey || held !== undefined}
              onClose={() => open(false)}
              onClosed={onClosed}
            >
              {children}
            </MenuPanel>
          )}
        </Opening>
      ) : null}
    </>
  );
}

export function MenuItem(props: MenuItemProps) {
  const { part } = usePart(menuParts);
  return part ? <part.MenuItem {...props} /> : null;
}

export function MenuSeparator() {
  const { part } = usePart(menuParts);
  return part ? <part.MenuSeparator /> : null;
}

export function MenuLabel(props: { children: ReactNode }) {
  const { part } = usePart(menuParts);
  return part ? <part.MenuLabel {...props} /> : null;
}

export function MenuChoice(props: MenuChoiceProps) {
  const { part } = usePart(menuParts);
  return part ? <part.MenuChoice {...props} /> : null;
}
