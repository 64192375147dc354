/** A picture of the loop with its YAML inside; dropped on the page it opens as the loop again. */

import { readFile } from "@/api/client";
import { isPng, readPngText, writePngText } from "@/lib/png";
import { useDetail } from "@/state/canvas";

const KEYWORD = "coloop";

export async function makeLoopPng(yaml: string): Promise<Uint8Array> {
  return writePngText(await drawGraph(), KEYWORD, yaml);
}

/** The YAML in a file that may be a picture; null where it is none, or carries no loop. */
export function readLoopPng(bytes: Uint8Array): { isPicture: boolean; yaml: string | null } {
  return { isPicture: isPng(bytes), yaml: readPngText(bytes, KEYWORD) };
}

const AROUND = 32;
/** Pixels of the picture for one of the canvas, as long as it stays within the most that browsers draw. */
const SCALE = 2;
const MAX_PIXELS = 8192;
const DRAWN = ".react-flow__node, .react-flow__edge-path, .loop-edge, .pool-frame, .canvas-note";
const LEFT_OUT =
  ".react-flow__edgeupdater, .react-flow__nodesselection, .canvas-ground, .canvas-guides, .sr-only";

interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}

async function drawGraph(): Promise<Uint8Array> {
  const { squeeze } = useDetail.getState();
  if (squeeze === null) return await drawShown();
  useDetail.setState({ squeeze: null });
  try {
    await isDrawn();
    return await drawShown();
  } finally {
    useDetail.setState({ squeeze });
  }
}

async function isDrawn(): Promise<void> {
  for (let frame = 0; frame < 3; frame += 1)
    await new Promise((done) => requestAnimationFrame(done));
}

async function drawShown(): Promise<Uint8Array> {
  const viewport = document.querySelector<HTMLElement>(".react-flow__viewport");
  const area = viewport && areaOf(viewport);
  if (!viewport || !area) throw new Error("There is nothing on the canvas yet.");
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await toSvg(viewport, area))}`;
  await image.decode();
  const scale = Math.min(SCALE, MAX_PIXELS / Math.max(area.width, area.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(area.width * scale);
  canvas.height = Math.round(area.height * scale);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("The browser cannot draw pictures.");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("The browser could not create the picture.");
  return new Uint8Array(await blob.arrayBuffer());
}

function areaOf(viewport: HTMLElement): Area | null {
  const boxes = [...viewport.querySelectorAll(DRAWN)]
    .map((one) => one.getBoundingClientRect())
    .filter(({ width, height }) => width + height > 0);
  if (boxes.length === 0) return null;
  const origin = viewport.getBoundingClientRect();
  const zoom = new DOMMatrix(getComputedStyle(viewport).transform).a || 1;
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  return {
    left: (left - origin.left) / zoom - AROUND,
    top: (top - origin.top) / zoom - AROUND,
    width: (Math.max(...boxes.map((box) => box.right)) - left) / zoom + 2 * AROUND,
    height: (Math.max(...boxes.map((box) => box.bottom)) - top) / zoom + 2 * AROUND,
  };
}

async function toSvg(viewport: HTMLElement, { left, top, width, height }: Area): Promise<string> {
  const copy = viewport.cloneNode(true) as HTMLElement;
  for (const one of copy.querySelectorAll(LEFT_OUT)) one.remove();
  const written = viewport.querySelectorAll("textarea");
  for (const [at, field] of copy.querySelectorAll("textarea").entries())
    field.textContent = written[at]?.value ?? "";
  copy.style.transform = `translate(${-left}px, ${-top}px)`;
  const frame = document.createElement("div");
  frame.className = "react-flow";
  const { fontFamily, fontSize, lineHeight, color } = getComputedStyle(document.body);
  Object.assign(frame.style, { fontFamily, fontSize, lineHeight, color });
  Object.assign(frame.style, { width: `${width}px`, height: `${height}px` });
  frame.style.background = "var(--canvas)";
  frame.append(copy);

  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  // Rules for the page as a whole count here too: the theme is one of them.
  svg.setAttribute("data-theme", document.documentElement.dataset.theme ?? "light");
  const style = document.createElementNS(space, "style");
  style.textContent = await rulesOfPage();
  const inside = document.createElementNS(space, "foreignObject");
  inside.setAttribute("width", "100%");
  inside.setAttribute("height", "100%");
  inside.append(frame);
  svg.append(style, inside);
  return new XMLSerializer().serializeToString(svg);
}

async function rulesOfPage(): Promise<string> {
  const rules = [...document.styleSheets].flatMap((sheet) => {
    try {
      return [...sheet.cssRules];
    } catch {
      return []; // of another origin, an extension's
    }
  });
  return (await Promise.all(rules.map(ruleText))).join("\n");
}

/** A picture loads nothing, so the fonts in use come with it. */
async function ruleText(rule: CSSRule): Promise<string> {
  if (!(rule instanceof CSSFontFaceRule)) return rule.cssText;
  const isUsed = [...document.fonts].some(
    (font) =>
      font.status === "loaded" &&
      font.family.replaceAll('"', "") ===
        rule.style.getPropertyValue("font-family").replaceAll('"', "") &&
      (rule.style.getPropertyValue("unicode-range") || font.unicodeRange).toLowerCase() ===
        font.unicodeRange.toLowerCase(),
  );
  const [source, address] = rule.cssText.match(/url\("?([^")]+)"?\)/) ?? [];
  if (!isUsed || !source || !address) return "";
  const base = rule.parentStyleSheet?.href ?? location.href;
  const file = await readFile(new URL(address, base).href);
  return rule.cssText.replace(source, `url("${await toDataUrl(file)}")`);
}

function toDataUrl(file: Blob): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
