// Whom a template names as the owner, where that one is not there.

import { parseRef, shortRef } from "../catalog/entity";

/** An owner as an entity's file names him: of a word without a kind the catalog takes it that it is a group. */
export function ownerText(ref: string): string {
    return parseRef(ref).kind === "group" ? shortRef(ref) : ref.replace(/^user:default\//, "user:");
}

/** Who to offer in place of a template's owner whom nobody has made: a group of the person that is there, else himself. What somebody has
 * written stays, and so does a name that is known. */
export function ownerInstead(value: unknown, fallback: unknown, known: readonly string[], mine: readonly string[]): string | undefined {
    if (typeof value !== "string" || value !== fallback) return undefined;
    const { kind, namespace, name } = parseRef(value, "group");
    if (known.includes(`${kind}:${namespace}/${name}`.toLowerCase())) return undefined;
    const group = mine.find(ref => ref.startsWith("group:") && known.includes(ref));
    const better = group ?? mine.find(ref => ref.startsWith("user:"));
    return better === undefined ? undefined : ownerText(better);
}
