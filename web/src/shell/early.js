// Light or dark before anything is painted: the application comes later, and a white page would flash until then. A classic script in the
// head; what it decides is decided again, and kept up to date, in theme.ts.

(function () {
    var chosen = null;
    try {
        chosen = localStorage.getItem("fairway-theme");
    } catch {
        // Storage may be forbidden; the system's choice holds then.
    }
    var dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.classList.toggle("pf-v6-theme-dark", dark);
})();
