/** Which rows of a long list are near enough to be drawn. */
export function visibleRange(scrollTop: number, height: number, rowHeight: number, count: number, overscan = 8): { first: number; last: number } {
    const first = Math.max(0, Math.floor(scrollTop / rowHeight) - overscan);
    const last = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + overscan);
    return { first: Math.min(first, last), last };
}
