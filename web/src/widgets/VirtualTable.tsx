// A table of any length: only the rows that are seen exist. Columns that do not fit on a phone are left out.

import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { visibleRange } from "./window";

export interface Column<T> {
    key: string;
    title: string;
    render: (row: T) => ReactNode;
    /** A track of CSS grid: `2fr`, `8rem`. */
    width?: string;
    /** Left out on narrow screens. */
    isOptional?: boolean;
    /** Sortable when it is there. */
    sortBy?: (row: T) => string | number;
}

interface Props<T> {
    label: string;
    rows: readonly T[];
    columns: Column<T>[];
    rowKey: (row: T) => string;
    rowHeight?: number;
    /** At most this much of the screen. */
    maxHeight?: string;
    sort?: string;
    onSort?: (key: string) => void;
}

function useIsNarrow(): boolean {
    const [query] = useState(() => matchMedia("(max-width: 48rem)"));
    const [isNarrow, setNarrow] = useState(query.matches);
    useEffect(() => {
        const change = (): void => setNarrow(query.matches);
        query.addEventListener("change", change);
        return () => query.removeEventListener("change", change);
    }, [query]);
    return isNarrow;
}

export function VirtualTable<T>({ label, rows, columns, rowKey, rowHeight = 44, maxHeight = "70vh", sort, onSort }: Props<T>) {
    const box = useRef<HTMLDivElement>(null);
    const [place, setPlace] = useState({ top: 0, height: 800 });
    const isNarrow = useIsNarrow();
    const shown = isNarrow ? columns.filter(column => !column.isOptional) : columns;
    const grid = { gridTemplateColumns: shown.map(column => `minmax(0, ${column.width ?? "1fr"})`).join(" ") };
    useLayoutEffect(() => {
        const element = box.current;
        if (!element) return;
        const observer = new ResizeObserver(() => setPlace(before => ({ ...before, height: element.clientHeight })));
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    const { first, last } = visibleRange(place.top, place.height, rowHeight, rows.length);
    const onKeyDown = (event: KeyboardEvent): void => {
        const element = box.current;
        if (!element || event.target !== element) return;
        if (event.key === "Home") element.scrollTop = 0;
        if (event.key === "End") element.scrollTop = element.scrollHeight;
    };
    return (
        <div
            ref={box}
            className="fw-table"
            style={{ maxHeight }}
            role="table"
            aria-label={label}
            aria-rowcount={rows.length + 1}
            tabIndex={0}
            onKeyDown={onKeyDown}
            onScroll={event => setPlace({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
        >
            <div role="rowgroup" className="fw-table-head fw-table-row-group">
                <div role="row" aria-rowindex={1} className="fw-table-row fw-table-head" style={grid}>
                    {shown.map(column => {
                        const direction = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : undefined;
                        return (
                            <div role="columnheader" key={column.key} aria-sort={direction}>
                                {column.sortBy && onSort ? (
                                    <button type="button" onClick={() => onSort(direction === "ascending" ? `-${column.key}` : column.key)}>
                                        {column.title}
                                        {direction && <span aria-hidden> {direction === "ascending" ? "↑" : "↓"}</span>}
                                    </button>
                                ) : (
                                    column.title
                                )}
                            </div>
                        );
                    })}
                </div>
            </div>
            <div role="rowgroup" className="fw-table-body fw-table-spacer" style={{ height: rows.length * rowHeight }}>
                {rows.slice(first, last).map((row, at) => (
                    <div
                        role="row"
                        key={rowKey(row)}
                        aria-rowindex={first + at + 2}
                        className="fw-table-row"
                        style={{ ...grid, position: "absolute", top: (first + at) * rowHeight, left: 0, right: 0, height: rowHeight }}
                    >
                        {shown.map(column => (
                            <div role="cell" key={column.key}>{column.render(row)}</div>
                        ))}
                    </div>
                ))}
            </div>
        </div>
    );
}

/** Rows in the order that a sort key (`name`, `-age`) says. */
export function sorted<T>(rows: readonly T[], columns: Column<T>[], sort: string): T[] {
    const isDown = sort.startsWith("-");
    const by = columns.find(column => column.key === (isDown ? sort.slice(1) : sort))?.sortBy;
    if (!by) return [...rows];
    const compare = (a: T, b: T): number => {
        const [x, y] = [by(a), by(b)];
        return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    };
    return [...rows].sort((a, b) => (isDown ? -compare(a, b) : compare(a, b)));
}
