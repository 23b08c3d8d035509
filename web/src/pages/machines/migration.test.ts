import { expect, it } from "vitest";
import type { VirtualMachineInstanceMigration } from "../../api";
import { migrationsOf, progressOf } from "./migration";

const migration = (name: string, phase: string | undefined, more: Record<string, unknown> = {}, vmiName = "web"): VirtualMachineInstanceMigration => ({
    metadata: { name, namespace: "a", creationTimestamp: `2026-01-0${name}T00:00:00Z` }, spec: { vmiName }, status: { phase, ...more },
}) as unknown as VirtualMachineInstanceMigration;

it.each([[undefined, 0], ["Pending", 0], ["PreparingTarget", 50], ["Running", 83], ["Succeeded", 100], ["SomethingNew", 0]])("one that is %s is at %d %%", (phase, progress) => {
    expect(progressOf(migration("1", phase))).toBe(progress);
});

it("tells of the machine's own, newest first, and why one failed", () => {
    const state = { sourceNode: "n1", targetNode: "n2", startTimestamp: "2026-01-02T00:00:01Z", endTimestamp: "2026-01-02T00:00:09Z", failureReason: "the target is gone" };
    const told = migrationsOf([migration("1", "Succeeded"), migration("3", "Running", {}), migration("2", "Failed", { migrationState: state }), migration("4", "Running", {}, "other")], "web");
    expect(told.map(one => [one.name, one.phase, one.isOver, one.why])).toEqual([["3", "Running", false, ""], ["2", "Failed", true, "the target is gone"], ["1", "Succeeded", true, ""]]);
    expect(told[1]).toMatchObject({ from: "n1", to: "n2", begun: state.startTimestamp, ended: state.endTimestamp });
    expect(told[0]).toMatchObject({ begun: "2026-01-03T00:00:00Z", ended: undefined });
});
