// Answers that were given and not yet sent, kept for as long as the browser's tab is open: a session that ends while somebody writes must not take
// them with it. What is secret is never among them.

import { secretNames, titlesOf } from "./schema";

type Json = Record<string, unknown>;

/** What a tab keeps of a template's form. */
export interface Draft {
    answers: Json;
    /** Which pages are asked. */
    pages: boolean[];
    /** How far somebody has come. */
    reached: number;
}

/** The part of the browser's storage that is used here. */
export type Shelf = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const PREFIX = "fairway-draft ";
const LARGEST = 200_000;

const whose = (user: string): string => `${PREFIX}${JSON.stringify(user)} `;

export function draftKey(user: string, workspace: string, template: string): string {
    return `${whose(user)}${workspace} ${template}`;
}

/** Names of secret questions at any depth of the pages. */
function secretsOf(schema: unknown, found = new Set<string>()): Set<string> {
    if (Array.isArray(schema)) schema.forEach(one => secretsOf(one, found));
    if (typeof schema !== "object" || schema === null) return found;
    secretNames(schema, found);
    for (const inner of Object.values(schema)) if (typeof inner === "object") secretsOf(inner, found);
    return found;
}

/** An answer without what a secret question of this name was answered with, wherever it stands. */
function without(names: ReadonlySet<string>, value: unknown): unknown {
    if (Array.isArray(value)) return value.map(one => without(names, one));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)).map(([name, inner]) => [name, without(names, inner)]));
}

/** What may be kept of the answers. */
export function keepable(schemas: unknown[], answers: Json): Json {
    return without(secretsOf(schemas), answers) as Json;
}

function isDraft(value: unknown): value is Draft {
    const { answers, pages, reached } = (value ?? {}) as Partial<Draft>;
    return typeof answers === "object" && answers !== null && !Array.isArray(answers) && Array.isArray(pages) && pages.every(one => typeof one === "boolean") && Number.isInteger(reached);
}

/** What a draft is worth for the form as it is now: questions that are gone are left out, and secrets have to be given again, on the first page that
 * asks for one. */
export function resumed(schemas: unknown[], kept: unknown): Draft | undefined {
    if (!isDraft(kept) || kept.pages.length !== schemas.length) return undefined;
    const asked = titlesOf(schemas);
    const answers = Object.fromEntries(Object.entries(keepable(schemas, kept.answers)).filter(([name]) => asked.has(name)));
    if (Object.keys(answers).length === 0) return undefined;
    const secret = schemas.findIndex((schema, at) => kept.pages[at] === true && secretsOf(schema).size > 0);
    const reached = Math.max(0, Math.min(kept.reached, schemas.length));
    return { answers, pages: kept.pages, reached: secret < 0 ? reached : Math.min(reached, secret) };
}

export function readDraft(shelf: Shelf | undefined, key: string, schemas: unknown[]): Draft | undefined {
    try {
        return resumed(schemas, JSON.parse(shelf?.getItem(key) ?? "null"));
    } catch {
        // Storage may be forbidden, and what is in it anybody's: then one begins anew.
        return undefined;
    }
}

/** Keeps a draft; without answers there is none. */
export function writeDraft(shelf: Shelf | undefined, key: string, schemas: unknown[], draft: Draft): void {
    const text = JSON.stringify({ ...draft, answers: keepable(schemas, draft.answers) });
    try {
        if (text.length <= LARGEST) shelf?.setItem(key, text);
    } catch {
        // Then it lasts as long as the page.
    }
}

/** Forgets drafts: the one of a key, all that are not this user's, or all. */
export function dropDrafts(shelf: Shelf | undefined, which: { key: string } | { butOf: string } | "all"): void {
    try {
        if (!shelf) return;
        if (which !== "all" && "key" in which) return shelf.removeItem(which.key);
        const all = Array.from({ length: shelf.length }, (_, at) => shelf.key(at) ?? "");
        for (const key of all) if (key.startsWith(PREFIX) && (which === "all" || !key.startsWith(whose(which.butOf)))) shelf.removeItem(key);
    } catch {
        // What cannot be reached was not kept either.
    }
}

/** The storage of this tab, if the browser has one. */
export function shelf(): Shelf | undefined {
    try {
        return typeof sessionStorage === "undefined" ? undefined : sessionStorage;
    } catch {
        return undefined;
    }
}
