// Asks how to sync, with Argo CD's options.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { APPLICATIONS, type Application, subresource, useAction } from "../../api";
import { t } from "../../text/applications";
import { Problem } from "../pieces/parts";
import { type Chosen, destructive, OPTIONS, pruned, syncBody } from "./sync";

export function SyncDialog(props: { app: Application; onClose: () => void }): ReactNode {
    const { metadata, spec } = props.app;
    const name = metadata.name ?? "";
    const [chosen, setChosen] = useState<Chosen>({});
    const [revision, setRevision] = useState(spec.source?.targetRevision ?? "");
    const sync = useAction(() => subresource(APPLICATIONS, metadata.namespace, name, "sync", { method: "POST", body: syncBody(chosen, revision) }), t("requested", { what: t("doSync"), name }));
    const [typed, setTyped] = useState("");
    const harms = destructive(chosen);
    const isSure = harms.length === 0 || typed === name;
    const begin = async (): Promise<void> => {
        if (isSure && (await sync.run())) props.onClose();
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
                    {harms.length > 0 && (
                        <>
                            <Alert variant="warning" isInline title={t("pruneTitle")}>
                                {harms.map(harm => <div key={harm}><p>{t(`${harm}What`)}</p>{harm === "prune" && <Pruned names={pruned(props.app)} />}</div>)}
                            </Alert>
                            <FormGroup label={t("typeName", { name })} fieldId="sync-sure">
                                <TextInput id="sync-sure" value={typed} onChange={(_event, value) => setTyped(value)} autoComplete="off" />
                            </FormGroup>
                        </>
                    )}
                </Form>
                <Problem error={sync.error} />
            </ModalBody>
            <ModalFooter>
                <Button isLoading={sync.isRunning} isDisabled={sync.isRunning || !isSure} variant={harms.length > 0 ? "danger" : "primary"} onClick={() => void begin()}>{t("doSync")}</Button>
                <Button variant="link" onClick={props.onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}

function Pruned(props: { names: string[] }): ReactNode {
    if (props.names.length === 0) return <p>{t("pruneNone")}</p>;
    return <ul className="fw-long-list">{props.names.map(it => <li key={it} className="fw-wrap">{it}</li>)}</ul>;
}
