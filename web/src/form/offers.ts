// What a field with offers does with what is typed and pressed: which offers are left, which one is marked, what an answer is called. Values
// in, values out; `Combobox.tsx` draws it.

import { parseRef } from "../catalog/entity";

/** So many can be looked through; whoever wants another one types some letters of it. */
export const MOST_SHOWN = 50;

export interface Offer {
    /** The answer. */
    value: string;
    /** What people read and type. */
    label: string;
}

export interface Matching {
    offers: Offer[];
    /** So many more match than are shown. */
    more: number;
}

const plain = (text: string): string => text.trim().toLowerCase();

/** The offers in which every word that was typed occurs; those that begin with it come first. */
export function matching(offers: readonly Offer[], typed: string, most = MOST_SHOWN): Matching {
    const words = plain(typed).split(/\s+/).filter(Boolean);
    const found = offers.filter(({ value, label }) => {
        const text = `${label} ${value}`.toLowerCase();
        return words.every(word => text.includes(word));
    });
    const begins = (offer: Offer): number => (words[0] !== undefined && offer.label.toLowerCase().startsWith(words[0]) ? 0 : 1);
    const sorted = words.length === 0 ? found : [...found].sort((a, b) => begins(a) - begins(b));
    return { offers: sorted.slice(0, most), more: Math.max(0, sorted.length - most) };
}

/** The offer that was typed out. */
export function offerOf(offers: readonly Offer[], text: string): Offer | undefined {
    const wanted = plain(text);
    return offers.find(({ value, label }) => plain(label) === wanted || plain(value) === wanted);
}

export interface Box {
    isOpen: boolean;
    /** The place of the marked offer; -1 for none. */
    marked: number;
}

export interface Pressed extends Box {
    /** The offer that was chosen, by its place. */
    chosen?: number;
    /** Whether the key has done its work: the form and the browser must not see it. */
    isTaken: boolean;
}

/** What a key does, in the way of a combobox: arrows mark, Enter takes, Escape and Tab close. */
export function press({ isOpen, marked }: Box, key: string, count: number): Pressed {
    switch (key) {
        case "ArrowDown":
            if (!isOpen) return { isOpen: true, marked: count > 0 ? 0 : -1, isTaken: true };
            return { isOpen, marked: count === 0 ? -1 : (marked + 1) % count, isTaken: true };
        case "ArrowUp":
            if (!isOpen) return { isOpen: true, marked: count - 1, isTaken: true };
            return { isOpen, marked: count === 0 ? -1 : (marked <= 0 ? count : marked) - 1, isTaken: true };
        case "Enter":
            if (isOpen && marked >= 0 && marked < count) return { isOpen: false, marked: -1, chosen: marked, isTaken: true };
            return { isOpen: false, marked: -1, isTaken: false };
        case "Escape":
            return { isOpen: false, marked: -1, isTaken: isOpen };
        case "Tab":
            return { isOpen: false, marked: -1, isTaken: false };
        default:
            return { isOpen, marked, isTaken: false };
    }
}

/** What goes without saying in references of a question. `false`: no namespace does. */
export interface Defaults {
    kind?: string;
    namespace?: string | false;
}

/** A reference as people read it: without what goes without saying. */
export function refText(ref: string, { kind, namespace = "default" }: Defaults): string {
    const parts = parseRef(ref);
    if (parts.kind === "") return ref;
    const place = namespace !== false && parts.namespace === namespace.toLowerCase() ? "" : `${parts.namespace}/`;
    return kind !== undefined && parts.kind === kind.toLowerCase() ? `${place}${parts.name}` : `${parts.kind}:${place}${parts.name}`;
}

const NAME = /^[a-z0-9]+(?:[-_.][a-z0-9]+)*$/i;

/** What was typed, as a whole reference; as it was typed, if it is none or lacks what has no default. */
export function refOfText(text: string, { kind, namespace = "default" }: Defaults): string {
    const typed = text.trim();
    const parts = parseRef(typed, kind ?? "", namespace === false ? "" : namespace);
    return [parts.kind, parts.namespace, parts.name].every(part => NAME.test(part)) ? `${parts.kind}:${parts.namespace.toLowerCase()}/${parts.name.toLowerCase()}` : typed;
}

export interface Repo {
    host: string;
    owner: string;
    repo: string;
}

/** The parts of `HOST?owner=OWNER&repo=NAME`. */
export function repoOf(url: unknown): Repo {
    const [host = "", query = ""] = (typeof url === "string" ? url : "").replace(/^https?:\/\//, "").split("?");
    const search = new URLSearchParams(query);
    return { host, owner: search.get("owner") ?? "", repo: search.get("repo") ?? "" };
}

/** The answer; none before the repository has a name. */
export function repoUrl({ host, owner, repo }: Repo): string | undefined {
    if (repo === "") return undefined;
    return `${host}?${new URLSearchParams({ ...(owner ? { owner } : {}), repo }).toString()}`;
}

/** Whether a host is where this Fairway keeps its own repositories, which it can be asked about. */
export function isOwnHost(host: string, gitUrl: string | undefined): boolean {
    if (host === "fairway" || host === "") return true;
    return gitUrl !== undefined && URL.canParse(gitUrl) && [new URL(gitUrl).host, new URL(gitUrl).hostname].includes(host.toLowerCase());
}
