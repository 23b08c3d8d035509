// The machine as YAML, to be read and changed. What somebody else changed meanwhile is never overwritten unseen.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { type ReactNode, useState } from "react";
import { parse } from "yaml";
import { ApiError, replace, useAction, VIRTUAL_MACHINES, type VirtualMachine } from "../../api";
import { t } from "../../text/machines";
import { toYaml } from "../../widgets";
import { Problem } from "../pieces/parts";

function textOf(machine: VirtualMachine): string {
    const copy = structuredClone(machine);
    if (copy.metadata) delete copy.metadata.managedFields;
    return toYaml({ apiVersion: "kubevirt.io/v1", kind: "VirtualMachine", ...copy });
}

/** What was written. Without a version it would overwrite whatever is there: it gets the one that it was made from. */
function read(text: string, from: string): VirtualMachine {
    let written: unknown;
    try {
        written = parse(text);
    } catch (thrown) {
        throw new ApiError(400, t("notYaml", { why: thrown instanceof Error ? thrown.message : String(thrown) }));
    }
    const machine = (written ?? {}) as VirtualMachine;
    if (!machine.metadata?.name) throw new ApiError(400, t("notMachine"));
    return { ...machine, metadata: { ...machine.metadata, resourceVersion: machine.metadata.resourceVersion || from } };
}

export function YamlEditor(props: { machine: VirtualMachine }): ReactNode {
    const current = textOf(props.machine);
    const [draft, setDraft] = useState<{ text: string; from: string }>();
    const save = useAction(async (text: string, from: string) => { await replace(VIRTUAL_MACHINES, read(text, from)); setDraft(undefined); }, t("saved"));
    const isOld = draft !== undefined && draft.from !== (props.machine.metadata?.resourceVersion ?? "");
    return (
        <>
            {isOld && <Alert variant="warning" isInline title={t("changedMeanwhile")} />}
            <Problem error={save.error} />
            <div className="fw-row-gap">
                <Button isDisabled={draft === undefined || save.isRunning} isLoading={save.isRunning} onClick={() => draft && void save.run(draft.text, draft.from)}>{t("save")}</Button>
                <Button variant="secondary" isDisabled={draft === undefined} onClick={() => { setDraft(undefined); save.clear(); }}>{t("reload")}</Button>
            </div>
            <textarea
                className="fw-editor" aria-label={t("edit")} spellCheck={false} value={draft?.text ?? current}
                onChange={event => setDraft(before => ({ text: event.target.value, from: before?.from ?? props.machine.metadata?.resourceVersion ?? "" }))}
            />
        </>
    );
}
