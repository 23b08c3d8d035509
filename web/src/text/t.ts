// Texts in one place: each area of the portal declares its texts once, in English, with placeholders that the compiler checks. A translation
// is a catalog of the same keys that is laid over them (`setCatalog`, before pages are loaded), so that a missing text is English and never a key.

type Placeholders<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | Placeholders<Rest> : never;
type Values<S extends string> = { [Name in Placeholders<S>]: string | number };
type Args<S extends string> = [Placeholders<S>] extends [never] ? [] : [Values<S>];

export type Catalog = Record<string, Record<string, string>>;

let catalog: Catalog = {};
let language = "en";

/** Lays a translation over the English texts. */
export function setCatalog(lang: string, translated: Catalog): void {
    language = lang;
    catalog = translated;
    document.documentElement.lang = lang;
}

export function locale(): string {
    return language;
}

/** Fills `{name}` from the values. */
export function fill(text: string, values: Record<string, string | number> | undefined): string {
    if (!values) return text;
    return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

/** The texts of an area. */
export function texts<const M extends Record<string, string>>(area: string, messages: M) {
    return function t<K extends keyof M & string>(key: K, ...args: Args<M[K]>): string {
        const text = catalog[area]?.[key] ?? messages[key] ?? key;
        return fill(text, args[0] as Record<string, string | number> | undefined);
    };
}

/** The texts of an area that have a number `{n}` in them. A translation has `key.few` and the like beside `key.one` and `key.other`, as its
 * language counts. */
export function plurals<const M extends Record<string, { one: string; other: string }>>(area: string, messages: M) {
    return function counted(key: keyof M & string, count: number): string {
        const form = new Intl.PluralRules(language).select(count);
        const english = messages[key]?.[form === "one" ? "one" : "other"] ?? key;
        const text = catalog[area]?.[`${key}.${form}`] ?? catalog[area]?.[`${key}.other`] ?? english;
        return fill(text, { n: count.toLocaleString(language) });
    };
}
