// How long ago, as kubectl says it.

export function shortAge(from: string | undefined, now: number): string {
    if (!from) return "";
    const at = Date.parse(from);
    if (Number.isNaN(at)) return "";
    const seconds = Math.max(0, Math.floor((now - at) / 1000));
    if (seconds < 120) return `${seconds}s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 10) return seconds % 60 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
    if (minutes < 180) return `${minutes}m`;
    const hours = Math.floor(minutes / 60);
    if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
    if (hours < 48) return `${hours}h`;
    const days = Math.floor(hours / 24);
    if (days < 8) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
    if (days < 730) return `${days}d`;
    return `${Math.floor(days / 365)}y`;
}

/** How long something took, or takes. */
export function duration(from: string | undefined, to: string | undefined, now: number): string {
    if (!from) return "";
    return shortAge(from, to ? Date.parse(to) : now);
}
