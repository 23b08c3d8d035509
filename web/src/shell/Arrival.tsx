// Another page: the focus goes to where it begins, and what it is called is said. Nothing of that happens by itself where a script changes
// the page in place of the browser: the focus stays on a link that is gone, and who does not see the page hears nothing.

import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { useLocation } from "react-router";
import { titleAt } from "./title";

/** The page's name comes with its content. */
const SOON_MS = 700;

export function Arrival({ main }: { main: string }) {
    const { pathname } = useLocation();
    const before = useRef(pathname);
    const [said, setSaid] = useState("");
    // Before effects of the page itself, which may know a better name.
    useLayoutEffect(() => { document.title = titleAt(pathname); }, [pathname]);
    useEffect(() => {
        const from = before.current;
        before.current = pathname;
        // The browser itself has told of the first page, and of where that led.
        if (from === pathname || from === "/") return;
        document.getElementById(main)?.focus({ preventScroll: true });
        const timer = setTimeout(() => setSaid(document.title), SOON_MS);
        return () => clearTimeout(timer);
    }, [pathname, main]);
    return <div className="pf-v6-screen-reader" role="status" aria-live="polite" data-testid="arrival">{said}</div>;
}
