import type { KeyboardEvent } from "react";

/** Arrow keys go from card to card, as the grid lies: left and right along it, up and down to the nearest. */
export function useCardKeys() {
  return (event: KeyboardEvent<HTMLElement>) => {
    const cards = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-card]")];
    const here = cards.indexOf(document.activeElement as HTMLElement);
    if (here < 0) return;
    const next = target(cards, here, event.key);
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  };
}

function target(cards: readonly HTMLElement[], here: number, key: string): HTMLElement | undefined {
  if (key === "ArrowRight") return cards[here + 1];
  if (key === "ArrowLeft") return cards[here - 1];
  if (key === "Home") return cards[0];
  if (key === "End") return cards.at(-1);
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const columns = columnsOf(cards);
  return cards[here + (key === "ArrowDown" ? columns : -columns)];
}

/** Cards of the first row. */
function columnsOf(cards: readonly HTMLElement[]): number {
  const top = cards[0]?.getBoundingClientRect().top;
  const below = cards.findIndex((card) => card.getBoundingClientRect().top !== top);
  return below < 0 ? cards.length : below;
}
