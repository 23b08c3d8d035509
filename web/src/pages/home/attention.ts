// What asks for attention, worst first. Pure, so that it can be tested by tables.

import type { ApiError } from "../../api/errors";
import type { Application, VirtualMachine, Voyage } from "../../api/kinds";
import { toneOf } from "../../widgets/status";

export interface Concern {
    key: string;
    kind: string;
    name: string;
    to: string;
    word: string;
    message: string;
    weight: number;
}

interface Looked {
    state: "loading" | "live" | "lost" | "failed";
    error?: ApiError;
}

/** Whether all lists are known to be whole, and which of them are not: of things that nobody could look at nobody can say that they are well. */
export function sightOf(lists: Record<string, Looked>): { isWhole: boolean; isLoading: boolean; blind: { what: string; error: ApiError }[] } {
    const all = Object.entries(lists);
    return {
        isWhole: all.every(([, one]) => one.state === "live"),
        isLoading: all.some(([, one]) => one.state === "loading" && !one.error),
        blind: all.flatMap(([what, one]) => (one.state !== "live" && one.error ? [{ what, error: one.error }] : [])),
    };
}

export function concernsOf(applications: Application[], machines: VirtualMachine[], voyages: Voyage[], now: number): Concern[] {
    const found: Concern[] = [];
    for (const app of applications) {
        const { namespace = "", name = "" } = app.metadata ?? {};
        const health = app.status?.health?.status ?? "";
        const sync = app.status?.sync?.status ?? "";
        // `ComparisonError`, `InvalidSpecError`, `SyncError`: nobody knows then whether the rest is true.
        const wrong = app.status?.conditions?.find(one => one.type?.endsWith("Error"));
        const message = wrong?.message ?? app.status?.conditions?.[0]?.message ?? app.status?.operationState?.message ?? app.status?.health?.message ?? "";
        const at = { key: `a ${namespace}/${name}`, kind: "Application", name, to: `/applications/${namespace}/${name}`, message };
        if (health === "Degraded" || app.status?.operationState?.phase === "Failed" || app.status?.operationState?.phase === "Error") found.push({ ...at, word: health === "Degraded" ? health : "Failed", weight: 3 });
        else if (wrong || sync === "Unknown") found.push({ ...at, word: wrong?.type ?? "Unknown", weight: 2 });
        else if (health === "Missing" || sync === "OutOfSync") found.push({ ...at, word: sync === "OutOfSync" ? sync : health, weight: 1 });
    }
    for (const machine of machines) {
        const { namespace = "", name = "" } = machine.metadata ?? {};
        const word = machine.status?.printableStatus ?? "";
        if (toneOf(word) !== "red") continue;
        const bad = machine.status?.conditions?.find(one => (one.type === "Ready" && one.status === "False") || one.type === "Failure");
        found.push({ key: `m ${namespace}/${name}`, kind: "VirtualMachine", name, to: `/machines/${namespace}/${name}`, word, message: bad?.message ?? "", weight: 3 });
    }
    for (const run of voyages) {
        if (run.status?.phase !== "Failed" || now - Date.parse(run.status.endedAt ?? "") > 7 * 86_400_000) continue;
        const { namespace = "", name = "" } = run.metadata ?? {};
        found.push({ key: `v ${namespace}/${name}`, kind: "Voyage", name, to: `/voyages/${namespace}/${name}`, word: "Failed", message: run.status.message ?? "", weight: 2 });
    }
    return found.sort((a, b) => b.weight - a.weight || a.key.localeCompare(b.key));
}
