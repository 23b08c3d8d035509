import { describe, expect, it } from "vitest";
import type { VirtualMachine } from "../../api";
import { applicationOf, applicationsOf, branches, disksOf, FOLDER, isFolder, possible, sizeOf } from "./model";

const machine = (namespace: string, name: string, folder?: string, domain: unknown = {}): VirtualMachine => ({
    metadata: { namespace, name, labels: folder ? { [FOLDER]: folder } : undefined },
    spec: { template: { spec: { domain } } },
}) as unknown as VirtualMachine;

describe("the tree of machines", () => {
    it("has namespaces and their folders, counted", () => {
        expect(branches([machine("b", "1", "web"), machine("a", "2"), machine("b", "3", "db"), machine("b", "4")])).toEqual([
            { namespace: "a", count: 1, folders: [] },
            { namespace: "b", count: 3, folders: [{ name: "db", count: 1 }, { name: "web", count: 1 }] },
        ]);
    });
});

it.each([["Running", "stop"], ["Stopped", "start"], ["Paused", "unpause"], ["CrashLoopBackOff", "stop"], ["SomethingNew", "start"]] as const)("a machine that is %s can %s", (status, action) => {
    expect(possible(status)).toContain(action);
});

it.each([[{ cpu: { cores: 2, sockets: 2 }, memory: { guest: "1Gi" } }, { cpu: "4", memory: "1Gi" }], [{ resources: { requests: { memory: "64Mi" } } }, { cpu: "1", memory: "64Mi" }]])("the size of %j", (domain, size) => {
    expect(sizeOf(machine("a", "b", undefined, domain))).toEqual(size);
});

it.each([["web", true], ["web.1_a-B", true], ["", false], ["-web", false], ["a b", false], ["a/b", false], ["x".repeat(63), true], ["x".repeat(64), false]])("%s can be a folder: %s", (name, is) => {
    expect(isFolder(name)).toBe(is);
});

describe("when a machine is deleted", () => {
    const template = (name: string, spec: unknown) => ({ metadata: { name }, spec });
    const volume = (name: string, what: object) => ({ name, ...what });
    it.each([
        ["its own disks go, with their sizes", [template("web-disk", { storage: { resources: { requests: { storage: "10Gi" } } } }), template("old", { pvc: { resources: { requests: { storage: 1024 } } } }), template("odd", {})], [volume("root", { dataVolume: { name: "web-disk" } })], { lost: ["web-disk 10Gi", "old 1024", "odd"], kept: [] }],
        ["disks of others stay, each named once", [], [volume("a", { persistentVolumeClaim: { claimName: "data" } }), volume("b", { dataVolume: { name: "shared" } }), volume("c", { dataVolume: { name: "data" } })], { lost: [], kept: ["data", "shared"] }],
        ["what has no disk has none to lose", undefined, [volume("a", { containerDisk: { image: "x" } }), volume("b", { cloudInitNoCloud: {} })], { lost: [], kept: [] }],
    ])("%s", (_why, dataVolumeTemplates, volumes, expected) => {
        expect(disksOf({ spec: { dataVolumeTemplates, template: { spec: { domain: {}, volumes } } } } as unknown as VirtualMachine)).toEqual(expected);
    });
});

describe("the Application of a machine", () => {
    it.each([
        [undefined, undefined],
        ["web:kubevirt.io/VirtualMachine:user-vms/web", "web"],
        ["team_web:kubevirt.io/VirtualMachine:user-vms/web", "web"],
    ])("%s is %s", (mark, application) => {
        expect(applicationOf({ metadata: { annotations: mark ? { "argocd.argoproj.io/tracking-id": mark } : {} } } as unknown as VirtualMachine)).toBe(application);
    });
    it("are told once of several", () => {
        const of = (mark?: string): VirtualMachine => ({ metadata: { annotations: mark ? { "argocd.argoproj.io/tracking-id": mark } : {} } }) as unknown as VirtualMachine;
        expect(applicationsOf([of("web:a/B:c/1"), of(), of("db:a/B:c/2"), of("web:a/B:c/3")])).toEqual(["db", "web"]);
    });
});
