// Moving machines to a folder, or out of theirs.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useId, useState } from "react";
import { useAction, type VirtualMachine } from "../../api";
import { t } from "../../text/machines";
import { Problem } from "../pieces/parts";
import { moveTo, type Place, withEach } from "./act";
import { applicationOf, folderOf, isFolder } from "./model";

export function FolderDialog(props: { machines: VirtualMachine[]; known: string[]; onClose: () => void; onDone: () => void }): ReactNode {
    const { machines } = props;
    const id = useId();
    const places: Place[] = machines.map(it => ({ namespace: it.metadata?.namespace ?? "", name: it.metadata?.name ?? "" }));
    const what = (places.length === 1 ? places[0]?.name : undefined) ?? t("machinesWord", { n: places.length });
    const [folder, setFolder] = useState(() => new Set(machines.map(folderOf)).size === 1 ? folderOf(machines[0] ?? {} as VirtualMachine) : "");
    const move = useAction(() => withEach(places, place => moveTo(folder, place.namespace, place.name)), t("moved", { name: what }));
    const isGood = folder === "" || isFolder(folder);
    const submit = async (): Promise<void> => { if (isGood && (await move.run())) props.onDone(); };
    return (
        <Modal isOpen variant="small" onClose={props.onClose} aria-labelledby={`${id}-title`}>
            <ModalHeader title={t("folderTitle", { name: what })} labelId={`${id}-title`} />
            <ModalBody>
                <Form onSubmit={event => { event.preventDefault(); void submit(); }}>
                    <FormGroup label={t("folder")} fieldId={`${id}-folder`}>
                        <TextInput id={`${id}-folder`} value={folder} validated={isGood ? "default" : "error"} aria-describedby={`${id}-help`} list={`${id}-known`} onChange={(_event, value) => setFolder(value)} />
                        <datalist id={`${id}-known`}>{props.known.map(it => <option key={it} value={it} />)}</datalist>
                        <p id={`${id}-help`} className="fw-muted">{t(isGood ? "folderHelp" : "folderWrong")}</p>
                        {machines.some(applicationOf) && <p className="fw-muted">{t("folderDeclared")}</p>}
                    </FormGroup>
                </Form>
                <Problem error={move.error} />
            </ModalBody>
            <ModalFooter>
                <Button isDisabled={!isGood || move.isRunning} onClick={() => void submit()}>{t("moveToFolder")}</Button>
                <Button variant="link" onClick={props.onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}
