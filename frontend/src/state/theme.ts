import { useSyncExternalStore } from "react";
import { type Theme, usePreferences } from "./preferences";

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function resolve(theme: Theme): "light" | "dark" {
  if (theme === "system") return dark.matches ? "dark" : "light";
  return theme;
}

function apply(): void {
  const { theme } = usePreferences.getState();
  document.documentElement.dataset.theme = resolve(theme);
  try {
    localStorage.setItem("coloop.theme", theme);
  } catch {
    // The next visit starts with the system's theme.
  }
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  apply();
  dark.addEventListener("change", apply);
  usePreferences.subscribe((state, before) => {
    if (state.theme !== before.theme) apply();
  });
}

/** What the page has on, "light" or "dark", for canvases that draw with its colours. */
export function useResolvedTheme(): "light" | "dark" {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light"),
  );
}
