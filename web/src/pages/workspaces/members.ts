// Who has which role in a workspace, out of the bindings in it.

import type { ClusterRoleBinding, RoleBinding } from "../../api";

type Subject = NonNullable<RoleBinding["subjects"]>[number];

export interface Member {
    key: string;
    kind: string;
    who: string;
    role: string;
    /** Where the role holds; everywhere if there is none. */
    namespace?: string;
    binding: string;
    version?: string;
    /** Who else is in the binding, and stays. */
    others: Subject[];
}

/** The name that roles are bound to: that of the realm, which is the organisation's or the root's, before somebody's own. */
export function subjectName(workspace: string, name: string): string {
    return `${/^root:([^:]+)/.exec(workspace)?.[1] ?? "root"}/${name}`;
}

/** Members are people, groups and programs of the workspace. What the server gives itself is not shown: nobody is to take it away by a click. */
function isOfSystem(subject: Subject, binding: ClusterRoleBinding | RoleBinding): boolean {
    const { kind, name, namespace } = subject;
    return (name.startsWith("system:") && !name.startsWith("system:serviceaccount:"))
        || (kind === "ServiceAccount" && namespace === "kube-system") || name.startsWith("system:serviceaccount:kube-system:")
        || binding.metadata?.labels?.["kubernetes.io/bootstrapping"] === "rbac-defaults"
        || (kind !== "User" && binding.roleRef.name.startsWith("system:"));
}

export function membersOf(bindings: readonly (ClusterRoleBinding | RoleBinding)[]): Member[] {
    const found = bindings.flatMap(binding => {
        const subjects = binding.subjects ?? [];
        const { name = "", namespace, resourceVersion } = binding.metadata ?? {};
        return subjects.filter(subject => !isOfSystem(subject, binding)).map(subject => ({
            key: [namespace ?? "", name, subject.kind, subject.namespace ?? "", subject.name].join(" "),
            // A program's namespace is a part of its name.
            kind: subject.kind, who: subject.namespace ? `${subject.namespace}/${subject.name}` : subject.name, role: binding.roleRef.name,
            namespace, binding: name, version: resourceVersion, others: subjects.filter(it => it !== subject),
        }));
    });
    return found.sort((a, b) => a.who.localeCompare(b.who) || (a.namespace ?? "").localeCompare(b.namespace ?? "") || a.role.localeCompare(b.role));
}
