// Gateways and policies as the page shows them, without a page.

interface Condition { type?: string; status?: string; reason?: string; message?: string }

/** The word for how something stands, and why: the first of the conditions that is not true, else the last that is. */
export function standing(conditions: readonly Condition[] | undefined, wanted: string[]): { word: string; message: string; isGood: boolean } {
    const found = wanted.map(type => conditions?.find(it => it.type === type)).filter((it): it is Condition => it !== undefined);
    const bad = found.find(it => it.status !== "True");
    if (bad) return { word: bad.reason || `Not${bad.type}`, message: bad.message ?? "", isGood: false };
    const last = found.at(-1);
    return last ? { word: last.type ?? "", message: last.message ?? "", isGood: true } : { word: "Pending", message: "", isGood: false };
}

/** `Name: value` lines as headers; what is not one is told. */
export function readHeaders(text: string): { headers: Record<string, string>; wrong?: string } {
    const headers: Record<string, string> = {};
    for (const line of text.split("\n")) {
        if (line.trim() === "") continue;
        const at = line.indexOf(":");
        const name = line.slice(0, at).trim();
        if (at <= 0 || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) return { headers, wrong: line };
        headers[name] = line.slice(at + 1).trim();
    }
    return { headers };
}
