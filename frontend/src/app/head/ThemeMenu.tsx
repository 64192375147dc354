import { Monitor, Moon, Sun } from "lucide-react";
import { type Theme, usePreferences } from "@/session/preferences";
import { Menu, MenuChoice } from "@/ui/Menu";

const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

export function ThemeMenu() {
  const theme = usePreferences((state) => state.theme);
  const set = usePreferences((state) => state.set);
  const Icon = theme === "dark" ? Moon : theme === "light" ? Sun : Monitor;
  return (
    <Menu
      align="end"
      trigger={
        <button
          type="button"
          aria-label="Theme"
          title="Theme"
          className="inline-flex size-8 items-center justify-center rounded-2 text-muted hover:bg-hover hover:text-text"
        >
          <Icon size={16} />
        </button>
      }
    >
      {THEMES.map(({ value, label }) => (
        <MenuChoice key={value} isChosen={theme === value} onSelect={() => set({ theme: value })}>
          {label}
        </MenuChoice>
      ))}
    </Menu>
  );
}
