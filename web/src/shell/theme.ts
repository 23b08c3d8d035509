// Light or dark: what the user chose, else what the system says, and says from now on. `early.js` does the same before the first paint.

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const KEY = "fairway-theme";
const DARK = "pf-v6-theme-dark";
const SYSTEM = "(prefers-color-scheme: dark)";

export function themeOf(kept: string | null): Theme {
    return kept === "light" || kept === "dark" ? kept : "system";
}

export function isDarkIn(theme: Theme, isSystemDark: boolean): boolean {
    return theme === "system" ? isSystemDark : theme === "dark";
}

export function chosenTheme(): Theme {
    try {
        return themeOf(localStorage.getItem(KEY));
    } catch {
        // Storage may be forbidden; the system's choice holds then.
        return "system";
    }
}

let current: Theme = "system";

function show(): void {
    document.documentElement.classList.toggle(DARK, isDarkIn(current, matchMedia(SYSTEM).matches));
}

/** Shows the choice, and follows the system where there is none. */
export function applyTheme(): void {
    current = chosenTheme();
    matchMedia(SYSTEM).addEventListener("change", show);
    // Chosen in another tab.
    addEventListener("storage", event => {
        if (event.key !== KEY && event.key !== null) return;
        current = chosenTheme();
        show();
    });
    show();
}

export function chooseTheme(theme: Theme): void {
    current = theme;
    try {
        if (theme === "system") localStorage.removeItem(KEY);
        else localStorage.setItem(KEY, theme);
    } catch {
        // Then it lasts as long as the page.
    }
    show();
}
