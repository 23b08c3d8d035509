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

/** The repository that an address of the Git host leads to: people want its page here, the host itself has none. */
export function hostedRepository(address: string, host: string | undefined): string | undefined {
    if (!host || !address.startsWith(`${host}/`)) return undefined;
    const [owner, name] = address.slice(host.length + 1).split(/[/?#]/);
    return owner && name ? `/repositories/${owner}/${name.replace(/\.git$/, "")}` : undefined;
}
