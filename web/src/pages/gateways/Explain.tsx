// The way of a request, stage by stage, without sending it to anybody.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { TextArea } from "@patternfly/react-core/dist/dynamic/components/TextArea";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { useSearchParams } from "react-router";
import { ApiError, json, useAction, workspace } from "../../api";
import type { Explanation } from "../../api/rest/gateway";
import { t } from "../../text/gateways";
import { CommandHint, StatusLabel } from "../../widgets";
import { Problem } from "../pieces/parts";
import { explainCommand, readHeaders } from "./model";


const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

export function Explain(): ReactNode {
    const [params, setParams] = useSearchParams();
    const method = params.get("method") ?? "GET";
    const url = params.get("url") ?? "";
    // Headers can have keys in them, so they are not in the address.
    const [headers, setHeaders] = useState("");
    const [answer, setAnswer] = useState<Explanation>();
    const change = (key: string, value: string): void => setParams(before => { before.set(key, value); return before; }, { replace: true });
    const ask = useAction(async () => {
        const read = readHeaders(headers);
        if (read.wrong !== undefined) throw new ApiError(400, read.wrong);
        setAnswer(await json<Explanation>("/api/fairway/gateway/explain", { method: "POST", query: { workspace: workspace() }, body: { method, url, headers: read.headers } }));
    });
    return (
        <>
            <Form onSubmit={event => { event.preventDefault(); void ask.run(); }}>
                <FormGroup label={t("method")} fieldId="explain-method">
                    <FormSelect id="explain-method" value={method} onChange={(_event, value) => change("method", value)}>{METHODS.map(it => <FormSelectOption key={it} value={it} label={it} />)}</FormSelect>
                </FormGroup>
                <FormGroup label={t("url")} fieldId="explain-url"><TextInput id="explain-url" value={url} onChange={(_event, value) => change("url", value)} /></FormGroup>
                <FormGroup label={t("headers")} fieldId="explain-headers"><TextArea id="explain-headers" rows={3} value={headers} onChange={(_event, value) => setHeaders(value)} /></FormGroup>
                <div className="fw-row-gap"><Button type="submit" isLoading={ask.isRunning} isDisabled={url === "" || ask.isRunning}>{t("ask")}</Button><span className="fw-muted">{t("headersNote")}</span></div>
            </Form>
            <Problem error={ask.error} />
            {answer?.status && (
                <section aria-label={t("answer")} aria-live="polite">
                    <h2>{t("answer")}: {answer.status.code ?? answer.status.message ?? "-"}</h2>
                    <ol className="fw-plain-list">
                        {(answer.status.stages ?? []).map((stage, at) => (
                            <li key={at} className="fw-row-gap">
                                <StatusLabel word={stage.kind} tone={stage.passes === false ? "red" : stage.passes ? "green" : "grey"} />
                                <span>{stage.what}</span><span className="fw-muted">{stage.seen}</span>
                                {stage.passes === false && <strong>{t("no")}</strong>}
                            </li>
                        ))}
                    </ol>
                </section>
            )}
            {url && <CommandHint commands={[explainCommand(method, url, readHeaders(headers).headers)]} />}
        </>
    );
}
