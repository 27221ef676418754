/** Light, dark, or as the system says. */

import { effect, signal } from "@preact/signals";
import { screens } from "./screens";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "tarmac.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = signal(system.matches);
const stored = localStorage.getItem(KEY);
export const theme = signal<Theme>(THEMES.find((each) => each === stored) ?? "auto");

export function applyTheme(): void {
  system.addEventListener("change", (event) => (isDark.value = event.matches));
  effect(() => {
    const dark = theme.value === "dark" || (theme.value === "auto" && isDark.value);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    localStorage.setItem(KEY, theme.value);
    screens.recolour();
  });
}
