// Snapshots of a machine: take, restore, delete.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { create, remove, RESTORES, SNAPSHOTS, useAction, useList, type VirtualMachine, type VirtualMachineRestore, type VirtualMachineSnapshot } from "../../api";
import { t } from "../../text/machines";
import { Age, CommandHint, ConfirmByName, sh, StatusLabel } from "../../widgets";
import { Live, Problem, Unread } from "../pieces/parts";

export function Snapshots(props: { machine: VirtualMachine }): ReactNode {
    const { namespace = "", name = "" } = props.machine.metadata ?? {};
    const found = useList(SNAPSHOTS, { namespace });
    const restores = useList(RESTORES, { namespace });
    const [written, setWritten] = useState("");
    const [asked, setAsked] = useState<{ what: "restore" | "delete"; snapshot: string }>();
    const source = { apiGroup: "kubevirt.io", kind: "VirtualMachine", name };
    const take = useAction(async () => {
        const snapshot = { apiVersion: "snapshot.kubevirt.io/v1beta1", kind: "VirtualMachineSnapshot", metadata: { name: written || `${name}-${Date.now().toString(36)}`, namespace }, spec: { source } };
        await create(SNAPSHOTS, snapshot as unknown as VirtualMachineSnapshot);
        setWritten("");
    }, t("snapshotRequested", { name }));
    const restore = (snapshot: string): Promise<unknown> => create(RESTORES, {
        apiVersion: "snapshot.kubevirt.io/v1beta1", kind: "VirtualMachineRestore", metadata: { generateName: `${snapshot}-`, namespace },
        spec: { target: source, virtualMachineSnapshotName: snapshot },
    } as unknown as VirtualMachineRestore);
    const own = found.items.filter(it => it.spec?.source?.name === name).sort((a, b) => String(b.metadata?.creationTimestamp).localeCompare(String(a.metadata?.creationTimestamp)));
    const ownRestores = restores.items.filter(it => it.spec?.target?.name === name);
    return (
        <>
            <Form isHorizontal onSubmit={event => { event.preventDefault(); void take.run(); }}>
                <FormGroup label={t("snapshotName")} fieldId="snapshot-name">
                    <div className="fw-row-gap">
                        <TextInput id="snapshot-name" value={written} placeholder={`${name}-1`} onChange={(_event, value) => setWritten(value)} />
                        <Button type="submit" isLoading={take.isRunning} isDisabled={take.isRunning}>{t("take")}</Button>
                    </div>
                </FormGroup>
            </Form>
            <Problem error={take.error} />
            <Live of={found}>
                {own.length === 0 ? <p className="fw-muted">{t("noSnapshots")}</p> : (
                    <ul className="fw-plain-list">
                        {own.map(it => (
                            <li key={it.metadata?.uid} className="fw-row-gap">
                                <strong>{it.metadata?.name}</strong>
                                <StatusLabel word={it.status?.readyToUse ? "Ready" : it.status?.error?.message ? "Failed" : "Pending"} title={it.status?.error?.message} />
                                <Age of={it.metadata?.creationTimestamp} />
                                <Button size="sm" variant="secondary" isDisabled={!it.status?.readyToUse} onClick={() => setAsked({ what: "restore", snapshot: it.metadata?.name ?? "" })}>{t("restore")}</Button>
                                <Button size="sm" variant="link" isDanger onClick={() => setAsked({ what: "delete", snapshot: it.metadata?.name ?? "" })}>{t("remove")}</Button>
                            </li>
                        ))}
                    </ul>
                )}
            </Live>
            <Unread of={[[t("restores"), restores]]} />
            {ownRestores.length > 0 && (
                <>
                    <h2>{t("restores")}</h2>
                    <ul className="fw-plain-list">{ownRestores.map(it => <li key={it.metadata?.uid} className="fw-row-gap">{it.metadata?.name} <StatusLabel word={it.status?.complete ? "Succeeded" : "Progressing"} /> {it.status?.conditions?.map(one => one.message).filter(Boolean).join(" ")}</li>)}</ul>
                </>
            )}
            <CommandHint commands={[sh`kubectl get vmsnapshot,vmrestore -n ${namespace}`]} />
            {asked?.what === "restore" && (
                <ConfirmByName title={t("restoreTitle", { name, snapshot: asked.snapshot })} name={name} action={t("restore")} onClose={() => setAsked(undefined)} onConfirm={() => restore(asked.snapshot)} told={t("requested", { action: t("restore"), name })}>
                    <p>{t("restoreWhat", { name })}</p>
                </ConfirmByName>
            )}
            {asked?.what === "delete" && (
                <ConfirmByName title={t("deleteSnapshot", { name: asked.snapshot })} name={asked.snapshot} action={t("remove")} onClose={() => setAsked(undefined)} onConfirm={() => remove(SNAPSHOTS, namespace, asked.snapshot)} told={t("deletionRequested", { name: asked.snapshot })}>
                    <p>{t("deleteSnapshotWhat", { name: asked.snapshot })}</p>
                </ConfirmByName>
            )}
        </>
    );
}
