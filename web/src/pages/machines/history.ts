// What a machine used in the last hour, without a page: the part that is looked at, figures with units, and the rows of a table.

import type { History, Values } from "../../api/rest/machines";
import { locale } from "../../text/t";

export type Figure = Exclude<keyof History, "intervalSeconds" | "time">;
export const FIGURES: Figure[] = ["processors", "residentBytes", "receivedBytesPerSecond", "sentBytesPerSecond", "readBytesPerSecond", "writtenBytesPerSecond", "readsPerSecond", "writesPerSecond"];

/** What may be looked at, in seconds. */
export const RANGES = { "5m": 300, "1h": 3600 } as const;
export type Range = keyof typeof RANGES;

export const rangeOf = (word: string | null): Range => (word === "1h" ? "1h" : "5m");

/** The times between which is looked: it ends with the last measurement, whatever the clock of this browser says. */
export function windowOf(time: readonly number[], range: Range): [number, number] {
    const last = time.at(-1) ?? 0;
    return [last - RANGES[range], last];
}

/** Times and columns with a gap where nothing was measured for a while: no line is drawn over it. */
export function withGaps(history: History, figures: Figure[]): { time: number[]; columns: Values[] } {
    const time: number[] = [];
    const columns: Values[] = figures.map(() => []);
    history.time.forEach((at, n) => {
        const before = history.time[n - 1];
        if (before !== undefined && at - before > 3 * history.intervalSeconds) {
            time.push(before + history.intervalSeconds);
            for (const column of columns) column.push(null);
        }
        time.push(at);
        figures.forEach((figure, m) => columns[m]?.push(history[figure][n] ?? null));
    });
    return { time, columns };
}

export interface Row { at: number; values: Values }

/** Newest first; of an hour the means of minutes, as nobody listens to 360 lines. */
export function rowsOf(history: History, range: Range): Row[] {
    const [from] = windowOf(history.time, range);
    const step = range === "1h" ? 60 : history.intervalSeconds;
    const groups = new Map<number, number[]>();
    history.time.forEach((at, n) => {
        if (at < from) return;
        const key = range === "1h" ? Math.floor(at / step) * step : at;
        groups.set(key, [...(groups.get(key) ?? []), n]);
    });
    return [...groups].sort(([a], [b]) => b - a).map(([at, members]) => ({ at, values: FIGURES.map(figure => mean(members.map(n => history[figure][n] ?? null))) }));
}

function mean(values: Values): number | null {
    const known = values.filter((it): it is number => it !== null);
    return known.length === 0 ? null : known.reduce((sum, it) => sum + it, 0) / known.length;
}

export interface Summary { last: number | null; most: number | null }

/** The newest value that is looked at, and the largest. */
export function summaryOf(history: History, figure: Figure, range: Range): Summary {
    const [from] = windowOf(history.time, range);
    const seen = history[figure].filter((value, n): value is number => value !== null && (history.time[n] ?? 0) >= from);
    return { last: history[figure].at(-1) ?? null, most: seen.length === 0 ? null : seen.reduce((most, it) => Math.max(most, it), 0) };
}

const UNITS: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function number(value: number, digits = 3): string {
    return value.toLocaleString(locale(), { maximumSignificantDigits: digits });
}

/** `1.5 MB`, by thousands, as networks and disks are sold. */
function scaled(value: number, unit: string): string {
    const [per, prefix] = UNITS.find(([least]) => value >= least) ?? [1, ""];
    return `${number(value / per)} ${prefix}${unit}`;
}

export const shown: Record<Figure, (value: number) => string> = {
    processors: value => `${Math.round(value * 100).toLocaleString(locale())} %`,
    residentBytes: value => `${number(value / 1_048_576, 4)} MiB`,
    receivedBytesPerSecond: value => scaled(value, "B/s"),
    sentBytesPerSecond: value => scaled(value, "B/s"),
    readBytesPerSecond: value => scaled(value, "B/s"),
    writtenBytesPerSecond: value => scaled(value, "B/s"),
    readsPerSecond: value => `${number(value)} /s`,
    writesPerSecond: value => `${number(value)} /s`,
};

export function clock(seconds: number, withSeconds: boolean): string {
    return new Date(seconds * 1000).toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit", second: withSeconds ? "2-digit" : undefined });
}
