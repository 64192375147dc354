import { create } from "zustand";
import { stored } from "@/api/stored";
import { usePreferences } from "./preferences";

const dark = matchMedia("(prefers-color-scheme: dark)");
/** As `public/theme.js` reads it before the page is there. */
const kept = stored("coloop.theme");

const useShown = create<{ theme: "light" | "dark" }>()(() => ({ theme: "light" }));

function apply(): void {
  const { theme: chosen } = usePreferences.getState();
  const system = dark.matches ? "dark" : "light";
  const theme = chosen === "system" ? system : chosen;
  document.documentElement.dataset.theme = theme;
  kept.write(chosen);
  useShown.setState({ theme });
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
  return useShown((state) => state.theme);
}
