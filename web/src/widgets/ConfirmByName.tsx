// Asks for the name of what is destroyed, and says what goes with it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useId, useState } from "react";
import { useAction } from "../api/hooks";
import { t } from "../text/shell";
import { Problem } from "./Problem";

interface Props {
    title: string;
    /** The name that has to be typed. */
    name: string;
    /** What is destroyed. */
    children: ReactNode;
    action: string;
    onConfirm: () => Promise<unknown>;
    /** What is told when it is done. */
    told?: string;
    onClose: () => void;
}

export function ConfirmByName({ title, name, children, action, onConfirm, onClose, told }: Props) {
    const [typed, setTyped] = useState("");
    const { run, isRunning, error } = useAction(onConfirm, told);
    const id = useId();
    const confirm = async (): Promise<void> => {
        if (typed === name && (await run())) onClose();
    };
    return (
        <Modal isOpen variant="small" onClose={onClose} aria-labelledby={`${id}-title`} aria-describedby={`${id}-body`}>
            <ModalHeader title={title} titleIconVariant="warning" labelId={`${id}-title`} />
            <ModalBody id={`${id}-body`}>
                {children}
                <Form
                    onSubmit={event => {
                        event.preventDefault();
                        void confirm();
                    }}
                >
                    <FormGroup label={t("confirmType", { name })} fieldId={id}>
                        <TextInput id={id} value={typed} onChange={(_, value) => setTyped(value)} autoComplete="off" />
                    </FormGroup>
                </Form>
                <Problem error={error} />
            </ModalBody>
            <ModalFooter>
                <Button variant="danger" isDisabled={typed !== name || isRunning} isLoading={isRunning} onClick={() => void confirm()}>
                    {action}
                </Button>
                <Button variant="link" onClick={onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}
