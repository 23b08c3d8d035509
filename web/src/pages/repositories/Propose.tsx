// Asks for a pull request: which branch, into which, and why.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { useNavigate } from "react-router";
import { useAction } from "../../api";
import { t } from "../../text/repositories";
import { Problem } from "../pieces/parts";
import { gitea } from "./gitea";

interface Props { owner: string; name: string; branches: string[]; base: string; branch: string }

export function Propose(props: Props): ReactNode {
    const { owner, name, branches, base } = props;
    const navigate = useNavigate();
    const others = branches.filter(it => it !== base);
    const [written, setWritten] = useState<{ head?: string; title: string; body: string }>({ title: "", body: "" });
    const head = written.head ?? (others.includes(props.branch) ? props.branch : others[0]) ?? "";
    const send = useAction(async () => {
        const made = await gitea.propose(owner, name, { title: written.title, body: written.body, head, base });
        void navigate(`/repositories/${owner}/${name}/pulls/${made.number}`);
    }, t("pullCreated", { name: written.title }));
    // There is nothing to bring in while there is one branch.
    if (others.length === 0) return null;
    return (
        <>
            <h2>{t("propose")}</h2>
            <Form onSubmit={event => { event.preventDefault(); void send.run(); }}>
                <FormGroup label={t("from")} fieldId="pull-head">
                    <FormSelect id="pull-head" value={head} onChange={(_event, value) => setWritten(before => ({ ...before, head: value }))}>{others.map(it => <FormSelectOption key={it} value={it} label={t("into", { head: it, base })} />)}</FormSelect>
                </FormGroup>
                <FormGroup label={t("pullTitle")} fieldId="pull-title"><TextInput id="pull-title" value={written.title} onChange={(_event, title) => setWritten(before => ({ ...before, title }))} /></FormGroup>
                <FormGroup label={t("description")} fieldId="pull-body"><TextInput id="pull-body" value={written.body} onChange={(_event, body) => setWritten(before => ({ ...before, body }))} /></FormGroup>
                <div><Button type="submit" isLoading={send.isRunning} isDisabled={written.title === "" || send.isRunning}>{t("propose")}</Button></div>
            </Form>
            <Problem error={send.error} />
        </>
    );
}
