// Workspaces below this one, and who may do what in it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useMemo, useState } from "react";
import { CLUSTER_ROLE_BINDINGS, type ClusterRoleBinding, create, GROUPS, patch, pathIn, remove, type Resource, ROLE_BINDINGS, useAction, useList, USERS, type Workspace, workspace, WORKSPACES } from "../../api";
import { t } from "../../text/workspaces";
import { Age, type Column, CommandHint, ConfirmByName, PageHeader, SafeLink, StatusLabel, VirtualTable } from "../../widgets";
import "../pieces/pieces.css";
import { AddressTabs, Live, Problem, Unread } from "../pieces/parts";
import { Contents } from "./Contents";
import { type Member, membersOf, subjectName } from "./members";

const ROLES = [["view", "view"], ["edit", "edit"], ["admin", "admin"], ["cluster-admin", "clusterAdmin"]] as const;
export default function Workspaces(): ReactNode {
    const path = workspace();
    const above = path.includes(":") ? path.slice(0, path.lastIndexOf(":")) : undefined;
    return (
        <>
            <PageHeader title={t("title")} description={t("here", { path })} actions={above && <SafeLink to={pathIn(above, "/workspaces")}>{t("up", { path: above })}</SafeLink>} />
            <PageSection className="fw-stack">
                <AddressTabs label={t("title")} tabs={[["below", t("below"), () => <Below path={path} />], ["members", t("members"), () => <Members />]]} />
                <CommandHint commands={["fairway workspace tree", "fairway workspace create NAME --type root:universal", "kubectl get clusterrolebindings", "kubectl get rolebindings -A"]} />
            </PageSection>
        </>
    );
}

function Below(props: { path: string }): ReactNode {
    const found = useList(WORKSPACES);
    const [name, setName] = useState("");
    const [type, setType] = useState("universal");
    const [gone, setGone] = useState<string>();
    const making = useAction(async () => {
        await create(WORKSPACES, { apiVersion: "tenancy.kcp.io/v1alpha1", kind: "Workspace", metadata: { name }, spec: { type: { name: type, path: "root" } } } as Workspace);
        setName("");
    }, t("workspaceCreated", { name }));
    const sorted = useMemo(() => [...found.items].sort((a, b) => (a.metadata?.name ?? "").localeCompare(b.metadata?.name ?? "")), [found.items]);
    const columns: Column<Workspace>[] = [
        { key: "name", title: t("name"), width: "2fr", render: it => <SafeLink to={pathIn(`${props.path}:${it.metadata?.name}`, "/workspaces")}>{it.metadata?.name}</SafeLink> },
        { key: "status", title: t("status"), width: "8rem", render: it => <StatusLabel word={it.status?.phase} /> },
        { key: "type", title: t("type"), isOptional: true, render: it => it.spec?.type?.name },
        { key: "created", title: t("created"), width: "6rem", isOptional: true, render: it => <Age of={it.metadata?.creationTimestamp} /> },
        { key: "actions", title: "", width: "6rem", render: it => <Button size="sm" variant="link" isDanger onClick={() => setGone(it.metadata?.name)}>{t("remove")}</Button> },
    ];
    return (
        <>
            <Live of={found}>
                {sorted.length === 0 ? <p className="fw-muted">{t("none")}</p> : <VirtualTable label={t("below")} rows={sorted} columns={columns} rowKey={it => it.metadata?.uid ?? it.metadata?.name ?? ""} />}
            </Live>
            <h2>{t("create")}</h2>
            <Form onSubmit={event => { event.preventDefault(); void making.run(); }}>
                <FormGroup label={t("name")} fieldId="workspace-name"><TextInput id="workspace-name" value={name} onChange={(_event, value) => setName(value)} /></FormGroup>
                <FormGroup label={t("type")} fieldId="workspace-type">
                    <FormSelect id="workspace-type" value={type} onChange={(_event, value) => setType(value)}>{["universal", "organization", "team"].map(it => <FormSelectOption key={it} value={it} label={it} />)}</FormSelect>
                </FormGroup>
                <div><Button type="submit" isLoading={making.isRunning} isDisabled={name === "" || making.isRunning}>{t("create")}</Button></div>
            </Form>
            <Problem error={making.error} />
            {gone && (
                <ConfirmByName title={t("removeTitle", { name: gone })} name={gone} action={t("remove")} onClose={() => setGone(undefined)} told={t("workspaceDeleted", { name: gone })} onConfirm={() => remove(WORKSPACES, undefined, gone)}>
                    <p>{t("removeWhat", { path: `${props.path}:${gone}` })}</p>
                    <Contents of={`${props.path}:${gone}`} />
                </ConfirmByName>
            )}
        </>
    );
}

/** Takes one subject out of a binding; with the last one the binding goes, too. Nobody else's change is lost: the version must be the one that was seen. */
async function withdraw(member: Member): Promise<void> {
    const resource = member.namespace ? ROLE_BINDINGS : CLUSTER_ROLE_BINDINGS;
    if (member.others.length === 0) await remove(resource, member.namespace, member.binding);
    else await patch(resource as Resource, member.namespace, member.binding, { metadata: { resourceVersion: member.version }, subjects: member.others });
}

/** Who is known in this workspace, to choose from. */
function Offered(props: { kind: string }): ReactNode {
    const users = useList(USERS);
    const groups = useList(GROUPS);
    const found = props.kind === "Group" ? groups : users;
    const names = found.items.map(it => subjectName(workspace(), it.metadata?.name ?? "")).sort();
    if (found.error && found.state !== "live") return <p className="fw-muted">{t("unlisted", { why: found.error.message })}</p>;
    return (
        <>
            <datalist id="member-names">{names.map(name => <option key={name} value={name} />)}</datalist>
            {names.length > 0 && <p className="fw-muted">{t("there", { n: names.length })}</p>}
        </>
    );
}

function Members(): ReactNode {
    const found = useList(CLUSTER_ROLE_BINDINGS);
    const within = useList(ROLE_BINDINGS);
    const [written, setWritten] = useState({ kind: "User", name: "", role: "view" });
    const [gone, setGone] = useState<Member>();
    const add = useAction(async () => {
        const made = `${written.role}-${written.kind}-${written.name}`.toLowerCase().replace(/[^a-z0-9.-]+/g, "-").slice(0, 100);
        await create(CLUSTER_ROLE_BINDINGS, {
            apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name: made },
            roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: written.role },
            subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: written.kind, name: written.name }],
        } as ClusterRoleBinding);
        setWritten(before => ({ ...before, name: "" }));
    }, t("memberAdded", { name: written.name }));
    const rows = useMemo(() => membersOf([...found.items, ...within.items]), [found.items, within.items]);
    const columns: Column<Member>[] = [
        { key: "who", title: t("name"), width: "2fr", render: row => row.who },
        { key: "kind", title: t("kind"), width: "8rem", isOptional: true, render: row => row.kind },
        { key: "role", title: t("role"), width: "10rem", render: row => <StatusLabel word={row.role} tone="purple" /> },
        { key: "where", title: t("where"), width: "2fr", isOptional: true, render: row => (row.namespace ? t("inNamespace", { namespace: row.namespace }) : t("everywhere")) },
        { key: "actions", title: "", width: "7rem", render: row => <Button size="sm" variant="link" isDanger onClick={() => setGone(row)}>{t("removeMember")}</Button> },
    ];
    return (
        <>
            <Unread of={[["RoleBinding", within]]} />
            <Live of={found}>
                {rows.length === 0 ? <p className="fw-muted">{t("noMembers")}</p> : <VirtualTable label={t("members")} rows={rows} columns={columns} rowKey={row => row.key} />}
                <p className="fw-muted">{t("built")}</p>
            </Live>
            <h2>{t("add")}</h2>
            <Form onSubmit={event => { event.preventDefault(); void add.run(); }}>
                <FormGroup label={t("kind")} fieldId="member-kind">
                    <FormSelect id="member-kind" value={written.kind} onChange={(_event, kind) => setWritten(before => ({ ...before, kind }))}><FormSelectOption value="User" label={t("user")} /><FormSelectOption value="Group" label={t("group")} /></FormSelect>
                </FormGroup>
                <FormGroup label={t("who")} fieldId="member-name"><TextInput id="member-name" value={written.name} list="member-names" autoComplete="off" onChange={(_event, name) => setWritten(before => ({ ...before, name }))} /><Offered kind={written.kind} /></FormGroup>
                <FormGroup label={t("role")} fieldId="member-role">
                    <FormSelect id="member-role" value={written.role} onChange={(_event, role) => setWritten(before => ({ ...before, role }))}>{ROLES.map(([role, label]) => <FormSelectOption key={role} value={role} label={t(label)} />)}</FormSelect>
                </FormGroup>
                <div><Button type="submit" isLoading={add.isRunning} isDisabled={written.name === "" || add.isRunning}>{t("add")}</Button></div>
            </Form>
            <Problem error={add.error} />
            {gone && (
                <ConfirmByName title={t("removeMemberTitle", { name: gone.who })} name={gone.who} action={t("removeMember")} onClose={() => setGone(undefined)} told={t("memberRemoved", { name: gone.who })} onConfirm={() => withdraw(gone)}>
                    <p>{t("removeMemberWhat", { name: gone.who, role: gone.role })} {gone.namespace ? t("inNamespace", { namespace: gone.namespace }) : t("everywhere")}</p>
                </ConfirmByName>
            )}
        </>
    );
}
