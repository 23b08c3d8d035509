// What is in a workspace, in words.

import type { ApiError, KubernetesObject } from "../../api";
import { t } from "../../text/workspaces";
import { isOfSystem } from "../gateways/model";

export interface Content { items: readonly KubernetesObject[]; state: string; error?: ApiError }

/** More names than these nobody reads in a dialog. */
const NAMED = 8;

/** Names of what is there; that nobody could look is not the same as that there is nothing. */
export function contentText({ items, state, error }: Content): string {
    if (state !== "live") return error ? t("notSeen", { why: error.message }) : t("looking");
    const names = items.map(it => [it.metadata?.namespace, it.metadata?.name].filter(Boolean).join("/")).filter(name => !isMade(name)).sort();
    if (names.length === 0) return t("nothingInIt");
    const shown = names.slice(0, NAMED).join(", ");
    return names.length > NAMED ? t("andMore", { names: shown, n: names.length - NAMED }) : shown;
}

/** Namespaces that every workspace has. */
const isMade = (name: string): boolean => !name.includes("/") && (name === "default" || isOfSystem(name));
