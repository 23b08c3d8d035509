// How long ago something happened; counts on by itself. One clock serves all ages of a page.

import { useSyncExternalStore } from "react";
import { t } from "../text/shell";
import { locale } from "../text/t";
import { shortAge } from "./age";
import { Clock } from "./clock";

const clock = new Clock();

/** The time, every five seconds. */
export function useNow(): number {
    return useSyncExternalStore(clock.subscribe, clock.now, clock.now);
}

/** In a sentence it is so long ago; in a column whose head says what it is, kubectl's short form is enough. */
export function Age({ of, isAgo }: { of: string | undefined; isAgo?: boolean }) {
    const text = shortAge(of, Math.max(useNow(), of ? Date.parse(of) : 0));
    if (!of || !text) return null;
    return <time dateTime={of} title={new Date(of).toLocaleString(locale())}>{isAgo ? t("ago", { time: text }) : text}</time>;
}
