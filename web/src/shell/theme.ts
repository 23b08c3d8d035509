// Light or dark: what the user chose, else what the system says.

const KEY = "fairway-theme";
const DARK = "pf-v6-theme-dark";

export function isDark(): boolean {
    let chosen: string | null = null;
    try {
        chosen = localStorage.getItem(KEY);
    } catch {
        // Storage may be forbidden; the system's choice holds then.
    }
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function applyTheme(): void {
    document.documentElement.classList.toggle(DARK, isDark());
}

export function setDark(dark: boolean): void {
    try {
        localStorage.setItem(KEY, dark ? "dark" : "light");
    } catch {
        // Then it lasts as long as the page.
    }
    document.documentElement.classList.toggle(DARK, dark);
}
