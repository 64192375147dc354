import {
  Anchor,
  Archive,
  Bot,
  Box,
  ChartLine,
  Columns2,
  Database,
  Dices,
  Filter,
  Gauge,
  GitFork,
  type LucideIcon,
  Scale,
  Star,
  TextCursorInput,
  Wrench,
} from "lucide-react";

/** Icons that the catalog names; anything else is a box. */
const ICONS: Record<string, LucideIcon> = {
  anchor: Anchor,
  archive: Archive,
  bot: Bot,
  "chart-line": ChartLine,
  "columns-2": Columns2,
  database: Database,
  dices: Dices,
  filter: Filter,
  gauge: Gauge,
  "git-fork": GitFork,
  scale: Scale,
  star: Star,
  "text-cursor-input": TextCursorInput,
  wrench: Wrench,
};

export function KindIcon({ name, size = 16 }: { name: string | undefined; size?: number }) {
  const Icon = ICONS[name ?? ""] ?? Box;
  return <Icon size={size} aria-hidden="true" />;
}
