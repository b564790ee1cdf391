// Light or dark: the reader's system decides until the reader does. Kept in this browser.

const STORAGE_KEY = "lineage-theme";

export type Theme = "system" | "light" | "dark";

const ORDER: Theme[] = ["system", "light", "dark"];

/** Makes the button switch the theme, and sets the one that was chosen before. `changed` hears of every change. */
export function startTheme(button: HTMLButtonElement): void {
  let theme = storedTheme();
  const set = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = { system: "◐ System", light: "○ Light", dark: "● Dark" }[theme];
    button.setAttribute("aria-label", `Theme: ${theme}. Change it`);
    document.dispatchEvent(new Event("theme"));
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
    localStorage.setItem(STORAGE_KEY, theme);
    set();
  });
  // Drawings are told as well when the system changes.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("theme")),
  );
  set();
}

function storedTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** What a custom property like `--ink` is now, as a colour that a canvas takes. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

export const prefersReducedMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
