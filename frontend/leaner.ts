/** What libraries carry that this page never uses, and that no bundler can tell. */
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

/** React Flow moves what it draws and colours nothing: of d3's colours it needs to be told that a text is none. */
export const LEANER_PACKAGES = {
  "d3-color": fileURLToPath(new URL("./src/lib/noColor.ts", import.meta.url)),
};

/** Names of the strokes of an icon, for a list that changes: theirs never do. */
export function leanerIcons(): Plugin {
  return {
    name: "leaner-icons",
    apply: "build",
    transform: {
      filter: { id: /node_modules\/lucide-react\/dist\/esm\/icons\// },
      handler: (code) => ({ code: code.replaceAll(/,?\s*key: "\w+"/g, ""), map: null }),
    },
  };
}

const BETWEEN = ["Number", "Rgb", "String", "TransformCss", "TransformSvg"];

/** The graph moves from one view to another, which is three numbers; d3 goes from any value to any other. */
export function leanerMoves(): Plugin {
  return {
    name: "leaner-moves",
    apply: "build",
    transform: {
      filter: { id: /node_modules\/d3-interpolate\/dist\/d3-interpolate\.mjs$/ },
      handler: (code) => {
        const kept = ["zoom as interpolateZoom", "numberArray as interpolate"];
        for (const kind of BETWEEN) kept.push(`number as interpolate${kind}`);
        const exported = `export { ${kept.join(", ")} };`;
        const lean = code
          .replaceAll(/^(?:var|const) interpolateTransform\w+ = .*$/gm, "")
          .replace(/^export \{[^}]*\};$/m, exported);
        return { code: lean, map: null };
      },
    },
  };
}

/** Functions are given their names again, for messages of errors; a class that is named so is never left out. */
export function leanerControls(): Plugin {
  const named = /^\s*(?:static \{\s*)?__name\(\w+, "\w+"\);(?:\s*\})?$/gm;
  return {
    name: "leaner-controls",
    apply: "build",
    transform: {
      filter: { id: /node_modules\/@radix-ui\/[\w-]+\/dist\/index\.mjs$/ },
      handler: (code) => ({ code: code.replaceAll(named, ""), map: null }),
    },
  };
}
