/** The lines of a text that are in the page: those in sight, some around them, and those that are asked for. */
import { htmlOf, type Piece } from "./highlight";

export const LINE_HEIGHT = 18;
/** Lines above and below those in sight, so that there are some before the page hears of a scroll. */
const AROUND = 40;

/** What is not as wide as a letter of this language. */
const UNEVEN = /[^\x20-\x7e\n]/;

export class Rows {
  /** As the library has them: the layer of overlays, and then each line, which is drawn where it is not. */
  readonly all: HTMLCollectionOf<HTMLDivElement>;
  private readonly drawn = new Map<number, HTMLDivElement>();
  private readonly painted = new WeakMap<HTMLDivElement, string>();
  private readonly watch: ResizeObserver;
  private pieces: readonly Piece[] = [];
  /** The line with which each piece begins, from 1. */
  private starts: number[] = [];
  private count = 0;
  private active = 0;
  private top = 0;
  private height = 0;
  private shown: readonly [number, number] = [0, 0];
  private numberOf = (row: number) => row;

  constructor(
    private readonly container: HTMLElement,
    private readonly wrapper: HTMLElement,
    private readonly area: HTMLTextAreaElement,
    overlays: HTMLDivElement,
  ) {
    const asked = { get: (_: object, key: string) => (key === "0" ? overlays : this.row(+key)) };
    this.all = new Proxy({}, asked as ProxyHandler<object>) as HTMLCollectionOf<HTMLDivElement>;
    container.addEventListener("scroll", () => this.scroll(), { passive: true });
    this.watch = new ResizeObserver(() => {
      this.height = container.clientHeight;
      this.scroll();
    });
    this.watch.observe(container);
  }

  show(pieces: readonly Piece[], text: string, tabSize: number): void {
    this.pieces = pieces;
    this.count = 0;
    this.starts = pieces.map(({ lines }) => {
      this.count += lines;
      return this.count - lines + 1;
    });
    const { style } = this.wrapper;
    style.height = `${this.count}lh`;
    this.container.style.setProperty("--number-width", `${String(this.count).length}.001ch`);
    style.setProperty("--columns", `${widest(text, tabSize)}ch`);
    if (UNEVEN.test(text)) requestAnimationFrame(() => this.widen());
    this.draw();
  }

  number = (numberOf: (row: number) => number): void => {
    this.numberOf = numberOf;
  };

  activate(line: number): void {
    if (line === this.active) return;
    this.drawn.get(this.active)?.classList.remove("active-line");
    this.active = line;
    this.drawn.get(line)?.classList.add("active-line");
  }

  stop(): void {
    this.watch.disconnect();
  }

  /** The area scrolls nothing by itself: it is as wide as its widest line turns out to be. */
  private widen(): void {
    const { scrollWidth, clientWidth } = this.area;
    if (scrollWidth > clientWidth) this.wrapper.style.setProperty("--columns", `${scrollWidth}px`);
  }

  private scroll(): void {
    this.top = this.container.scrollTop;
    const [from, to] = this.inSight(AROUND / 2);
    if (from < this.shown[0] || to > this.shown[1]) this.draw();
  }

  private inSight(around: number): readonly [number, number] {
    const first = Math.floor(this.top / LINE_HEIGHT) + 1;
    const last = first + Math.ceil(this.height / LINE_HEIGHT);
    return [Math.max(1, first - around), Math.min(this.count, last + around)];
  }

  private draw(): void {
    const [from, to] = this.inSight(AROUND);
    this.shown = [from, to];
    for (const [line, row] of this.drawn)
      if (line < from || line > to) {
        row.remove();
        this.drawn.delete(line);
      }
    for (let line = from; line <= to; line += 1) this.row(line);
  }

  /** The row of a line as the text is now. */
  private row(line: number): HTMLDivElement | undefined {
    if (!(line >= 1 && line <= this.count)) return;
    let row = this.drawn.get(line);
    if (!row) {
      row = document.createElement("div");
      row.className = line === this.active ? "pce-line active-line" : "pce-line";
      row.ariaHidden = "true";
      row.style.top = `${line - 1}lh`;
      this.drawn.set(line, row);
      this.wrapper.append(row);
    }
    const number = String(this.numberOf(line - 1) + 1);
    if (row.dataset.number !== number) row.dataset.number = number;
    const html = this.htmlAt(line);
    if (this.painted.get(row) !== html) {
      row.innerHTML = `${html}\n`;
      this.painted.set(row, html);
    }
    return row;
  }

  private htmlAt(line: number): string {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] ?? 0) <= line) low = middle;
      else high = middle - 1;
    }
    const piece = this.pieces[low];
    return (piece && htmlOf(piece)[line - (this.starts[low] ?? 0)]) ?? "";
  }
}

/** Columns of the widest line; at least, where signs are not as wide as letters of this language. */
function widest(text: string, tabSize: number): number {
  const isPlain = !UNEVEN.test(text);
  let most = 0;
  for (let at = 0; at <= text.length; ) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    if (isPlain) most = Math.max(most, end - at);
    else if ((end - at) * tabSize > most)
      most = Math.max(most, columns(text.slice(at, end), tabSize));
    at = end + 1;
  }
  return most;
}

function columns(line: string, tabSize: number): number {
  let count = 0;
  for (const sign of line) {
    if (sign === "\t") count += tabSize - (count % tabSize);
    else if (!/[\p{M}\p{Cf}]/u.test(sign)) count += 1;
  }
  return count;
}
