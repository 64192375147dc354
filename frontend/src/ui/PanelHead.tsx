import { createContext, type ReactNode, useContext } from "react";
import { createPortal } from "react-dom";

/** Room beside the names of panels; null where a panel stands by itself. */
export const PanelHeadContext = createContext<HTMLElement | null>(null);

export function PanelHead({ children }: { children: ReactNode }) {
  const room = useContext(PanelHeadContext);
  return room ? (
    createPortal(children, room)
  ) : (
    <div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1">{children}</div>
  );
}
