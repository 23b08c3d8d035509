/** An address that may be a link: http or https, or a path of this site. Anything else (javascript:, data:) is none. */
export function safeAddress(text: string | undefined): string | undefined {
    if (!text) return undefined;
    const trimmed = text.trim();
    if (/^https?:\/\//i.test(trimmed)) {
        try {
            return new URL(trimmed).href;
        } catch {
            return undefined;
        }
    }
    return trimmed.startsWith("/") && !trimmed.startsWith("//") && !trimmed.startsWith("/\\") ? trimmed : undefined;
}
