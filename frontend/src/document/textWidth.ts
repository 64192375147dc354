/** How wide a text of the page's font is, near enough to plan room for it before it is drawn. Pure. */

/** Shares of the font's size, of the semibold cut: a plan that is too wide does no harm. */
const NARROW = 0.32;
const SMALL = 0.42;
const USUAL = 0.62;
const WIDE = 0.72;
const WIDEST = 0.95;

const SHARES = new Map<string, number>([
  ...[..."iljI.,:;'|!"].map((one) => [one, NARROW] as const),
  ...[..."ftr()[]/-· "].map((one) => [one, SMALL] as const),
  ...[..."ABCDEGHKNOPQRSTUVXYZ&"].map((one) => [one, WIDE] as const),
  ...[..."mwMW@%—→"].map((one) => [one, WIDEST] as const),
]);

export function textWidth(text: string, size: number): number {
  let width = 0;
  for (const one of text) width += SHARES.get(one) ?? USUAL;
  return Math.ceil(width * size);
}
