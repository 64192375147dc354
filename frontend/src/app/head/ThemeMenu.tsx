import { LogOut, Monitor, Moon, Sun } from "lucide-react";
import { toast } from "sonner";
import { errorMessage } from "@/api/client";
import { signOut } from "@/api/routes";
import { setPreferences, type Theme, usePreferences } from "@/state/preferences";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuSeparator } from "@/ui/Menu";

const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

export function ThemeMenu() {
  const theme = usePreferences((state) => state.theme);
  const Icon = theme === "dark" ? Moon : theme === "light" ? Sun : Monitor;
  return (
    <Menu
      align="end"
      trigger={
        <button
          type="button"
          aria-label="Theme and sign-out"
          title="Theme and sign-out"
          className="inline-flex size-8 items-center justify-center rounded-2 text-muted hover:bg-hover hover:text-text"
        >
          <Icon size={16} />
        </button>
      }
    >
      <MenuLabel>Theme</MenuLabel>
      {THEMES.map(({ value, label }) => (
        <MenuChoice
          key={value}
          isChosen={theme === value}
          onSelect={() => setPreferences({ theme: value })}
        >
          {label}
        </MenuChoice>
      ))}
      <MenuSeparator />
      <MenuItem icon={<LogOut size={14} />} onSelect={() => void leave()}>
        Sign out
      </MenuItem>
    </Menu>
  );
}

async function leave(): Promise<void> {
  try {
    await signOut();
  } catch (error) {
    toast.error("Could not sign out.", { description: errorMessage(error) });
  }
}
