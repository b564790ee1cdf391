// Light or dark: the system decides until the user does. The choice is stored in this browser.

const STORAGE_KEY = "lineage-theme";

export type Theme = "system" | "light" | "dark";

const ORDER: Theme[] = ["system", "light", "dark"];

/** Makes the button switch the theme, and sets the stored one. The document gets an event `theme` at every change. */
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
  // Drawings follow a change of the system, too.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    document.dispatchEvent(new Event("theme")),
  );
  set();
}

function storedTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** The current value of a custom property such as `--ink`, as a colour for a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

export const prefersReducedMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
