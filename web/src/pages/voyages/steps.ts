// A Voyage's status, read: its OpenAPI schema leaves the shape of steps open.

import type { Application, Voyage } from "../../api/kinds";
import { pageOf, type Thing, thingAt } from "../../links";
import { hostedRepository } from "../../widgets/address";

export interface Step {
    id: string;
    name: string;
    action: string;
    state: string;
    startedAt?: string;
    endedAt?: string;
    message: string;
    log: { at?: string; text: string }[];
    made: string[];
}

function text(value: unknown): string {
    return typeof value === "string" ? value : "";
}

function madeOf(value: unknown): string {
    if (typeof value === "string") return value;
    if (!value || typeof value !== "object") return "";
    const it = value as Record<string, unknown>;
    const isGone = it.undone === true;
    return isGone ? "" : text(it.title) || JSON.stringify(it.reference ?? value);
}

export function stepsOf(voyage: Voyage): Step[] {
    return (voyage.status?.steps ?? []).map(raw => ({
        id: text(raw.id),
        name: text(raw.name) || text(raw.id),
        action: text(raw.action),
        state: text(raw.state) || "pending",
        startedAt: text(raw.startedAt) || undefined,
        endedAt: text(raw.endedAt) || undefined,
        message: text(raw.message) || text(raw.error),
        log: (Array.isArray(raw.log) ? raw.log : []).map(line => ({ at: text(line?.at) || undefined, text: text(line?.text ?? line) })),
        made: (Array.isArray(raw.made) ? raw.made : []).map(madeOf).filter(Boolean),
    }));
}

/** What a run has made that has a page here, and that was not taken back. */
export function thingsOf(voyage: Voyage): Thing[] {
    const made = (voyage.status?.steps ?? []).flatMap(step => (Array.isArray(step.made) ? (step.made as unknown[]) : []));
    return made.flatMap(one => {
        if (!one || typeof one !== "object") return [];
        const { reference, undone } = one as { reference?: { path?: unknown }; undone?: unknown };
        const found = undone === true ? undefined : thingAt(text(reference?.path));
        return found ? [found] : [];
    });
}

/** What the Applications among them declare and has a page of its own: machines, above all. */
export function grownOf(things: Thing[], applications: readonly Application[]): Thing[] {
    const own = new Set(things.filter(it => it.kind === "Application").map(it => `${it.namespace}/${it.name}`));
    return applications.filter(app => own.has(`${app.metadata.namespace}/${app.metadata.name}`)).flatMap(app => app.status?.resources ?? []).flatMap(it => {
        const object = { group: it.group, kind: it.kind ?? "", namespace: it.namespace, name: it.name ?? "" };
        const to = pageOf(object);
        return to ? [{ ...object, to }] : [];
    });
}

export function linksOf(voyage: Voyage): { title: string; url: string }[] {
    const links = voyage.status?.output?.links;
    return (Array.isArray(links) ? links : []).map(link => ({ title: text(link?.title) || text(link?.url), url: text(link?.url) })).filter(link => link.url);
}

/** Those that lead elsewhere than what is named already: the page of a repository that the run has made is the repository's address, too. */
export function linksBeside(things: readonly Thing[], links: { title: string; url: string }[], gitUrl: string | undefined): { title: string; url: string }[] {
    const pages = new Set(things.map(one => one.to));
    return links.filter(link => !pages.has(hostedRepository(link.url, gitUrl) ?? ""));
}

export function textsOf(voyage: Voyage): { title: string; content: string }[] {
    const texts = voyage.status?.output?.text;
    return (Array.isArray(texts) ? texts : []).map(one => ({ title: text(one?.title), content: text(one?.content) }));
}

/** What can be wished of a run now. */
export function wishesOf(voyage: Voyage): { retry: boolean; cancel: boolean; decommission: boolean } {
    const phase = voyage.status?.phase ?? "Pending";
    return {
        retry: phase === "Failed" || phase === "Cancelled",
        cancel: (phase === "Pending" || phase === "Running") && !voyage.spec.cancel,
        decommission: (phase === "Succeeded" || phase === "Failed") && !voyage.spec.decommission,
    };
}
