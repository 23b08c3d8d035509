// What asks for attention, worst first. Pure, so that it can be tested by tables.

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

export function concernsOf(applications: Application[], machines: VirtualMachine[], voyages: Voyage[], now: number): Concern[] {
    const found: Concern[] = [];
    for (const app of applications) {
        const { namespace = "", name = "" } = app.metadata ?? {};
        const health = app.status?.health?.status ?? "";
        const sync = app.status?.sync?.status ?? "";
        const message = app.status?.conditions?.[0]?.message ?? app.status?.operationState?.message ?? app.status?.health?.message ?? "";
        const at = { key: `a ${namespace}/${name}`, kind: "Application", name, to: `/applications/${namespace}/${name}`, message };
        if (health === "Degraded" || app.status?.operationState?.phase === "Failed" || app.status?.operationState?.phase === "Error") found.push({ ...at, word: health === "Degraded" ? health : "Failed", weight: 3 });
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
