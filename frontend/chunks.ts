/**
 * Which modules a built page fetches together. What a page needs at once comes in a few large files: many small
 * ones take more bytes, packed, and more requests. What comes later stays apart, part by part.
 */
import { resolve } from "node:path";

interface Graph {
  getModuleInfo: (id: string) => { importedIds: readonly string[] } | null;
}

const STARTS = {
  page: ["src/main.tsx", "src/features/loops/DropZone.tsx"],
  editor: ["src/app/EditorPage.tsx"],
  run: ["src/app/RunPage.tsx"],
};
type Start = keyof typeof STARTS;

/** Packages of many parts, of which each importer takes a few: that one is imported tells nothing of the others. */
const ASSORTED = /node_modules\/(?:@?radix-ui|lucide-react)\//;
const CONTROLS =
  /node_modules\/(?:@?radix-ui|@floating-ui|cmdk|react-remove-scroll|aria-hidden)|src\/ui\/(?!code)/;

/** What comes later, together where one occasion or the next asks for it: small files take more bytes, packed. */
const LATER = {
  dialogs:
    /src\/features\/(?:(?:about|explain|history|presets|tour)\/|loops\/NewLoop|runs\/(?:Trust|ConfirmRun|Fork))|src\/app\/(?:ShortcutSheet|head\/(?:SignIn|Conflict))/,
  panels: /src\/features\/(?:dataset|memory|plan|problems|yaml)\//,
  "run-panels": /src\/features\/(?:charts|samples|timeline|runs\/(?:Log|Alert))/,
  lists:
    /src\/(?:session\/useSparks|app\/(?:(?:Loops|Runs|Compare)Page|LoopRuns)|features\/(?:compare|strip|runs\/(?:Run(?:Row|Table|Filters|Queue)|ChosenBar|TagsDialog|RenameRun|DeleteRun|RunMenu)|loops\/(?:LoopRow|LoopSearch)))/,
  schedule: /src\/features\/schedule\//,
  hardware: /src\/features\/hardware\/(?!HardwareBar\.)/,
};

/** Groups of chunks for Rolldown, the first that takes a module has it. */
export function chunkGroups(root: string) {
  const at = (file: string) => resolve(root, file);
  const starts = new Set(Object.values(STARTS).flat().map(at));
  const found = new Map<Start, Set<string>>();

  function needs(start: Start, graph: Graph): Set<string> {
    const known = found.get(start);
    if (known) return known;
    const seen = new Set<string>();
    const open = STARTS[start].map(at);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (seen.has(id) || ASSORTED.test(id)) continue;
      seen.add(id);
      open.push(...(graph.getModuleInfo(id)?.importedIds ?? []));
    }
    found.set(start, seen);
    return seen;
  }
  /** What each of these pages needs. */
  const together = (name: string, ...pages: Start[]) => ({
    name: (id: string, graph: Graph) =>
      !starts.has(id) && pages.every((page) => needs(page, graph).has(id)) ? name : null,
  });
  const shared = (name: string, test: RegExp) => ({ name, test, minShareCount: 2 });
  return [
    together("page", "page"),
    together("graph", "editor", "run"),
    together("editor", "editor"),
    together("run", "run"),
    ...Object.entries(LATER).map(([name, test]) => ({
      name,
      test,
      includeDependenciesRecursively: false,
    })),
    shared("controls", CONTROLS),
    shared("icons", /node_modules\/lucide-react\//),
  ].map((group, at, { length }) => ({ ...group, priority: length - at }));
}
