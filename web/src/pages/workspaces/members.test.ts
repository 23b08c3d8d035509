import { expect, it } from "vitest";
import type { RoleBinding } from "../../api";
import { membersOf, subjectName } from "./members";

const binding = (name: string, role: string, subjects: unknown[], namespace?: string): RoleBinding =>
    ({ metadata: { name, namespace, resourceVersion: "7" }, roleRef: { kind: "ClusterRole", name: role }, subjects }) as unknown as RoleBinding;
const [alice, bob, robot, server] = [{ kind: "User", name: "acme/alice" }, { kind: "User", name: "acme/bob" }, { kind: "ServiceAccount", name: "robot", namespace: "ci" }, { kind: "Group", name: "system:masters" }];

it("everybody with a role is shown, wherever it holds, with those who share the binding", () => {
    const members = membersOf([binding("all", "admin", [server]), binding("two", "edit", [bob, alice]), binding("here", "view", [alice, robot], "shop")]);
    expect(members.map(it => [it.who, it.role, it.namespace, it.others.map(other => other.name)])).toEqual([
        ["acme/alice", "edit", undefined, ["acme/bob"]],
        ["acme/alice", "view", "shop", ["robot"]],
        ["acme/bob", "edit", undefined, ["acme/alice"]],
        ["ci/robot", "view", "shop", ["acme/alice"]],
    ]);
    expect(new Set(members.map(it => it.key)).size).toBe(4);
});

it("a role that the system shares with somebody stays the system's", () => {
    expect(membersOf([binding("mixed", "admin", [server, alice])])[0]?.others).toEqual([server]);
});

it.each([["root", "root/ann"], ["root:acme", "acme/ann"], ["root:acme:team", "acme/ann"]])("somebody of %s is bound as %s", (workspace, expected) => {
    expect(subjectName(workspace, "ann")).toBe(expected);
});

it.each([
    ["a controller of the server", binding("system:controller:x", "system:controller:x", [{ kind: "ServiceAccount", name: "x", namespace: "kube-system" }]), 0],
    ["what the server makes at its start", { ...binding("defaults", "admin", [alice]), metadata: { name: "defaults", labels: { "kubernetes.io/bootstrapping": "rbac-defaults" } } }, 0],
    ["a group that the server made for itself", binding("project", "system:argocd:api-user", [{ kind: "Group", name: "argocd:project-roles" }]), 0],
    ["a person with a role of the system", binding("auth", "system:auth-delegator", [alice]), 1],
    ["a program of the workspace", binding("ci", "edit", [robot]), 1],
])("%s", (_what, one, count) => {
    expect(membersOf([one])).toHaveLength(count);
});
