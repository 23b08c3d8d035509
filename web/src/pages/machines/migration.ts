// Migrations of a machine, without a page.

import type { VirtualMachineInstanceMigration } from "../../api/kinds";

/** The way of a migration that succeeds, as KubeVirt names its stations. */
const WAY = ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"];

export const phaseOf = (it: VirtualMachineInstanceMigration): string => it.status?.phase || "Pending";
export const isOver = (it: VirtualMachineInstanceMigration): boolean => ["Succeeded", "Failed"].includes(phaseOf(it));

/** Per cent of the way: of stations, as nobody says how much memory is still to come. */
export function progressOf(it: VirtualMachineInstanceMigration): number {
    const at = WAY.indexOf(phaseOf(it));
    return Math.round((Math.max(at, 0) / (WAY.length - 1)) * 100);
}

export interface Told { name: string; phase: string; isOver: boolean; progress: number; from: string; to: string; begun?: string; ended?: string; why: string }

/** The migrations of a machine, newest first. */
export function migrationsOf(all: readonly VirtualMachineInstanceMigration[], machine: string): Told[] {
    const own = all.filter(it => it.spec?.vmiName === machine);
    own.sort((a, b) => String(b.metadata?.creationTimestamp).localeCompare(String(a.metadata?.creationTimestamp)));
    return own.map(it => {
        const state = it.status?.migrationState;
        const refused = it.status?.conditions?.find(one => one.status === "True" && /Fail|Reject|Abort/.test(one.type) && one.message)?.message;
        return {
            name: it.metadata?.name ?? "", phase: phaseOf(it), isOver: isOver(it), progress: progressOf(it), from: state?.sourceNode ?? "", to: state?.targetNode ?? "",
            begun: state?.startTimestamp ?? it.metadata?.creationTimestamp, ended: isOver(it) ? (state?.endTimestamp ?? undefined) : undefined, why: state?.failureReason || refused || "",
        };
    });
}
