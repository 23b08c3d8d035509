// What a browser does not let through to the screen of a machine by itself: combinations of keys, a text, and the whole display.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Dropdown, DropdownItem, DropdownList } from "@patternfly/react-core/dist/dynamic/components/Dropdown";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextArea } from "@patternfly/react-core/dist/dynamic/components/TextArea";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { t } from "../../text/machines";
import { MOST_TYPED, type Press, pressed, TOGETHER, typed } from "./keys";

/** QEMU presses a key for ten milliseconds and keeps a queue that is not long. */
const PAUSE_MS = 50;

interface Props {
    isConnected: boolean;
    send: (press: Press) => void;
    /** Keys go to the machine again. */
    onDone: () => void;
    onFullScreen: () => void;
}

export function ScreenTools(props: Props): ReactNode {
    const { isConnected, send, onDone } = props;
    const [isOpen, setOpen] = useState(false);
    const [isAsking, setAsking] = useState(false);
    const [left, setLeft] = useState(0);
    const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
    const stop = (): void => {
        clearTimeout(timer.current);
        setLeft(0);
    };
    useEffect(() => () => clearTimeout(timer.current), []);
    const type = (strokes: Press[][]): void => {
        const next = (at: number): void => {
            setLeft(strokes.length - at);
            strokes[at]?.forEach(send);
            if (at < strokes.length) timer.current = setTimeout(() => next(at + 1), PAUSE_MS);
        };
        next(0);
    };
    const close = (): void => { setAsking(false); onDone(); };
    return (
        <div className="fw-row-gap" role="group" aria-label={t("screenTools")}>
            <Dropdown
                isOpen={isOpen} isScrollable onOpenChange={setOpen}
                toggle={ref => <MenuToggle ref={ref} isDisabled={!isConnected} isExpanded={isOpen} onClick={() => setOpen(!isOpen)}>{t("sendKey")}</MenuToggle>}
            >
                <DropdownList>
                    {TOGETHER.map(([name, keys]) => <DropdownItem key={name} onClick={() => { setOpen(false); pressed(keys).forEach(send); onDone(); }}>{name}</DropdownItem>)}
                </DropdownList>
            </Dropdown>
            <Button variant="secondary" isDisabled={!isConnected || left > 0} onClick={() => setAsking(true)}>{t("paste")}</Button>
            <Button variant="secondary" onClick={props.onFullScreen}>{t("fullScreen")}</Button>
            {left > 0 && <><span role="status">{t("typing", { n: left })}</span><Button variant="link" isInline onClick={stop}>{t("stopTyping")}</Button></>}
            {isAsking && <Paste onClose={close} onType={strokes => { close(); type(strokes); }} />}
        </div>
    );
}

function Paste(props: { onClose: () => void; onType: (strokes: Press[][]) => void }): ReactNode {
    const [text, setText] = useState("");
    const { strokes, missing } = typed(text);
    const isGood = strokes.length > 0 && strokes.length <= MOST_TYPED;
    return (
        <Modal isOpen variant="small" onClose={props.onClose} aria-labelledby="paste-title">
            <ModalHeader title={t("paste")} labelId="paste-title" />
            <ModalBody>
                <Form onSubmit={event => event.preventDefault()}>
                    <FormGroup label={t("pasteText")} fieldId="paste-text">
                        <TextArea id="paste-text" rows={5} value={text} aria-describedby="paste-help" autoComplete="off" spellCheck={false} onChange={(_event, value) => setText(value)} />
                        <p id="paste-help" className="fw-muted">{t("pasteHelp", { n: MOST_TYPED })}</p>
                        {missing.length > 0 && <p role="status">{t("pasteMissing", { signs: missing.slice(0, 20).join(" ") })}</p>}
                    </FormGroup>
                </Form>
            </ModalBody>
            <ModalFooter>
                <Button isDisabled={!isGood} onClick={() => props.onType(strokes)}>{t("typeIt")}</Button>
                <Button variant="link" onClick={props.onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}
