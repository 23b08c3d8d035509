// Asks before something is done that hurts: says what it is done to. What cannot be brought back has to be typed by its name.

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
    /** The name that has to be typed; without one a click is enough. */
    name?: string;
    /** What is destroyed. */
    children: ReactNode;
    action: string;
    onConfirm: () => Promise<unknown>;
    /** What is told when it is done. */
    told?: string;
    onClose: () => void;
}

/** What destroys something. */
export function ConfirmByName(props: Props & { name: string }) {
    return <Confirm {...props} />;
}

/** What can be done again the other way round, and is not meant to happen by a slip of the hand. */
export function Confirm({ title, name, children, action, onConfirm, onClose, told }: Props) {
    const [typed, setTyped] = useState("");
    const { run, isRunning, error } = useAction(onConfirm, told);
    const id = useId();
    const isSure = name === undefined || typed === name;
    const confirm = async (): Promise<void> => {
        if (isSure && (await run())) onClose();
    };
    return (
        <Modal isOpen variant="small" onClose={onClose} aria-labelledby={`${id}-title`} aria-describedby={`${id}-body`}>
            <ModalHeader title={title} titleIconVariant="warning" labelId={`${id}-title`} />
            <ModalBody id={`${id}-body`}>
                {children}
                {name !== undefined && (
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
                )}
                <Problem error={error} />
            </ModalBody>
            <ModalFooter>
                <Button variant="danger" isDisabled={!isSure || isRunning} isLoading={isRunning} onClick={() => void confirm()}>
                    {action}
                </Button>
                <Button variant="link" onClick={onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}
