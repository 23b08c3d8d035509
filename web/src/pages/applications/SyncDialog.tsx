// Asks how to sync, with Argo CD's options.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { APPLICATIONS, type Application, subresource, useAction } from "../../api";
import { Problem } from "../pieces/parts";
import { t } from "./text";

const OPTIONS = ["prune", "dryRun", "applyOnly", "force", "replaceOption", "serverSide"] as const;
type Chosen = Partial<Record<(typeof OPTIONS)[number], boolean>>;

/** Argo CD's ApplicationSyncRequest. */
export function syncBody(chosen: Chosen, revision: string): Record<string, unknown> {
    const items = [...(chosen.replaceOption ? ["Replace=true"] : []), ...(chosen.serverSide ? ["ServerSideApply=true"] : [])];
    const force = { force: Boolean(chosen.force) };
    return {
        revision, prune: Boolean(chosen.prune), dryRun: Boolean(chosen.dryRun),
        strategy: chosen.applyOnly ? { apply: force } : { hook: force }, syncOptions: { items },
    };
}

export function SyncDialog(props: { app: Application; onClose: () => void }): ReactNode {
    const { metadata, spec } = props.app;
    const name = metadata.name ?? "";
    const [chosen, setChosen] = useState<Chosen>({});
    const [revision, setRevision] = useState(spec.source?.targetRevision ?? "");
    const sync = useAction(() => subresource(APPLICATIONS, metadata.namespace, name, "sync", { method: "POST", body: syncBody(chosen, revision) }));
    const begin = async (): Promise<void> => {
        if (await sync.run()) props.onClose();
    };
    return (
        <Modal isOpen variant="small" onClose={props.onClose} aria-labelledby="sync-title">
            <ModalHeader title={t("syncTitle", { name })} labelId="sync-title" />
            <ModalBody>
                <Form onSubmit={event => { event.preventDefault(); void begin(); }}>
                    <FormGroup label={t("revision")} fieldId="sync-revision">
                        <TextInput id="sync-revision" value={revision} onChange={(_event, value) => setRevision(value)} />
                    </FormGroup>
                    {OPTIONS.map(key => (
                        <Checkbox key={key} id={`sync-${key}`} label={t(key)} isChecked={chosen[key] ?? false} onChange={(_event, is) => setChosen(before => ({ ...before, [key]: is }))} />
                    ))}
                </Form>
                <Problem error={sync.error} />
            </ModalBody>
            <ModalFooter>
                <Button isLoading={sync.isRunning} isDisabled={sync.isRunning} onClick={() => void begin()}>{t("doSync")}</Button>
                <Button variant="link" onClick={props.onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}
