// Machines as the page shows them, without a page: the tree of namespaces and folders, filters, what can be done in which state.

import type { VirtualMachine, VirtualMachineInstance } from "../../api";

/** OpenShift's label for folders. */
export const FOLDER = "vm.openshift.io/folder";

export const statusOf = (machine: VirtualMachine): string => machine.status?.printableStatus ?? "Unknown";
export const folderOf = (machine: VirtualMachine): string => machine.metadata?.labels?.[FOLDER] ?? "";

/** Whether a label can say it. */
export const isFolder = (name: string): boolean => name.length <= 63 && /^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/.test(name);

export interface Branch {
    namespace: string;
    count: number;
    folders: { name: string; count: number }[];
}

/** Namespaces with their folders, sorted. */
export function branches(machines: VirtualMachine[]): Branch[] {
    const found = new Map<string, Map<string, number>>();
    for (const machine of machines) {
        const namespace = machine.metadata?.namespace ?? "";
        const folders = found.get(namespace) ?? new Map<string, number>();
        folders.set(folderOf(machine), (folders.get(folderOf(machine)) ?? 0) + 1);
        found.set(namespace, folders);
    }
    return [...found].sort(([a], [b]) => a.localeCompare(b)).map(([namespace, folders]) => ({
        namespace,
        count: [...folders.values()].reduce((sum, count) => sum + count, 0),
        folders: [...folders].filter(([name]) => name !== "").sort(([a], [b]) => a.localeCompare(b)).map(([name, count]) => ({ name, count })),
    }));
}

export type Action = "start" | "stop" | "restart" | "pause" | "unpause" | "migrate";

/** What is possible in a state; the server judges again. */
export function possible(status: string): Action[] {
    switch (status) {
        case "Running": return ["stop", "restart", "pause", "migrate"];
        case "Paused": return ["unpause", "stop", "restart"];
        case "Stopped": return ["start"];
        case "Starting": case "Provisioning": case "WaitingForVolumeBinding": case "CrashLoopBackOff": case "ErrorUnschedulable": return ["stop"];
        default: return ["start", "stop"];
    }
}

export function addressOf(instance: VirtualMachineInstance | undefined): string {
    return instance?.status?.interfaces?.find(it => it.ipAddress)?.ipAddress ?? "";
}

export interface Disks { lost: string[]; kept: string[] }

/** What becomes of a machine's disks when it is deleted: those of its own templates go with it, what it only refers to stays. */
export function disksOf(machine: VirtualMachine): Disks {
    const sizes = new Map((machine.spec?.dataVolumeTemplates ?? []).map(it => [String(it?.metadata?.name ?? ""), sizeOfDisk(it?.spec)]));
    const used = (machine.spec?.template?.spec?.volumes ?? []).flatMap(it => [it.dataVolume?.name, it.persistentVolumeClaim?.claimName]).filter((it): it is string => Boolean(it));
    return { lost: [...sizes].map(named => named.filter(Boolean).join(" ")), kept: [...new Set(used.filter(name => !sizes.has(name)))] };
}

function sizeOfDisk(spec: unknown): string {
    const { storage, pvc } = (spec ?? {}) as Record<"storage" | "pvc", { resources?: { requests?: { storage?: unknown } } } | undefined>;
    const size = storage?.resources?.requests?.storage ?? pvc?.resources?.requests?.storage;
    return typeof size === "string" || typeof size === "number" ? String(size) : "";
}

/** Actions that take something away from whoever uses the machine. */
export const INTERRUPTING: readonly Action[] = ["stop", "restart"];

/** CPU and memory as they are declared. */
export function sizeOf(machine: VirtualMachine): { cpu: string; memory: string } {
    const domain = machine.spec?.template?.spec?.domain;
    const cpu = domain?.cpu;
    const count = (cpu?.cores ?? 1) * (cpu?.sockets ?? 1) * (cpu?.threads ?? 1);
    const requests = domain?.resources?.requests as Record<string, unknown> | undefined;
    return { cpu: String(count), memory: String(domain?.memory?.guest ?? requests?.["memory"] ?? "-") };
}

/** The Application that a machine is declared by, as Argo CD's mark on it names it: `APP:GROUP/KIND:NAMESPACE/NAME`, or `NAMESPACE_APP:...`. */
export function applicationOf(machine: VirtualMachine): string | undefined {
    const mark = machine.metadata?.annotations?.["argocd.argoproj.io/tracking-id"]?.split(":")[0];
    return mark ? mark.slice(mark.indexOf("_") + 1) : undefined;
}

/** The Applications that declare some of these machines, each once. */
export function applicationsOf(machines: readonly VirtualMachine[]): string[] {
    return [...new Set(machines.map(applicationOf).filter((it): it is string => it !== undefined))].sort();
}
