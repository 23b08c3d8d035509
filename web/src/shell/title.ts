// What a tab of the browser is called: what is on the page first, so that ten tabs can be told apart, and bookmarks, and what a screen reader
// says of a new page.

import { useEffect } from "react";
import { useLocation } from "react-router";
import { t } from "../text/shell";
import { NAVIGATION } from "./navigation";

const decoded = (part: string): string => {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
};

/** The title of a page by its address; one of an object has its name in it, until the page knows a better one. */
export function titleAt(pathname: string, name?: string): string {
    const [section = "", ...rest] = pathname.split("/").filter(Boolean);
    const label = NAVIGATION.find(one => one.path === section)?.label();
    const last = rest.at(-1);
    const own = last === undefined ? undefined : (name ?? decoded(last));
    return [own, label, t("portal")].filter(Boolean).join(" · ");
}

/** Names the tab, as long as the page is there. */
export function usePageTitle(name: string | undefined): void {
    const { pathname } = useLocation();
    useEffect(() => {
        document.title = titleAt(pathname, name);
    }, [pathname, name]);
}
