/** Colours of code can be read in both themes, on the panel and on the line with the cursor (WCAG 2.1, 1.4.3). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const MIN = 4.5;
const TOKENS = readFileSync(join(process.cwd(), "src", "styles", "tokens.css"), "utf-8");
const NAMES = [...new Set(TOKENS.match(/--syntax-\w+/g))];

/** What each theme sets, light and dark. */
function values(name: string): string[] {
  const color = "(#[0-9a-f]{6})";
  const set = new RegExp(`^\\s*${name}: light-dark\\(${color}, ${color}\\);`, "m").exec(TOKENS);
  return set?.slice(1) ?? [];
}

const channels = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

function luminance(rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(left: readonly number[], right: readonly number[]): number {
  const [dark = 0, bright = 0] = [luminance(left), luminance(right)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

it.each(NAMES)("%s stands out from what it is written on", (name) => {
  const surfaces = values("--surface");
  const hovers = values("--hover");
  expect(surfaces).toHaveLength(2);
  expect(values(name)).toHaveLength(2);

  values(name).forEach((hex, theme) => {
    const surface = channels(surfaces[theme] ?? "");
    const hover = channels(hovers[theme] ?? "");
    const line = surface.map((value, at) => (value + (hover[at] ?? 0)) / 2);
    for (const ground of [surface, line])
      expect(contrast(channels(hex), ground)).toBeGreaterThanOrEqual(MIN);
  });
});
