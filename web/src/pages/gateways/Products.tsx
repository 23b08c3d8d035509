// API products for developers, keys that they ask for, and those who approve.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form, FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { Modal, ModalBody, ModalFooter, ModalHeader } from "@patternfly/react-core/dist/dynamic/components/Modal";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";
import { API_KEY_APPROVALS, API_KEY_REQUESTS, API_KEYS, API_PRODUCTS, type APIKey, type APIKeyApproval, type APIKeyRequest, type APIProduct, create, NAMESPACES, PLAN_POLICIES, remove, session, useAction, useList } from "../../api";
import { t } from "../../text/gateways";
import { Age, type Column, Confirm, ConfirmByName, CopyButton, sh, StatusLabel, VirtualTable } from "../../widgets";
import { Facts, Live, type Looked, Problem, Unread } from "../pieces/parts";
import { decided, isOfSystem, pathOf, standing } from "./model";
import { grantsText } from "./rules";
import type { Plan } from "./usage";

const shownName = (product: APIProduct): string => product.spec?.displayName ?? product.metadata?.name ?? "";

/** What a plan grants, in words. */
function granted(plan: Plan): string {
    return t("planLimits", { tier: plan.tier, limits: grantsText(plan) });
}

function usePlans(product: APIProduct | undefined): { plans: string[]; told: Map<string, string>; looked: Looked } {
    const plans = useList(PLAN_POLICIES, { namespace: product?.metadata?.namespace });
    const target = product?.spec?.targetRef?.name;
    const own = plans.items.filter(it => it.spec?.targetRef?.name === target).flatMap(it => it.spec?.plans ?? []);
    return { plans: own.map(plan => plan.tier), told: new Map(own.map(plan => [plan.tier, granted(plan)])), looked: plans };
}

export function Products(): ReactNode {
    const found = useList(API_PRODUCTS);
    const [asked, setAsked] = useState<APIProduct>();
    return (
        <Live of={found}>
            {found.items.length === 0 && <p className="fw-muted">{t("none")}</p>}
            {found.items.map(product => <Product key={product.metadata?.uid} product={product} onAsk={() => setAsked(product)} />)}
            {asked && <RequestKey product={asked} onClose={() => setAsked(undefined)} />}
        </Live>
    );
}

function Product(props: { product: APIProduct; onAsk: () => void }): ReactNode {
    const { product } = props;
    const { told, looked } = usePlans(product);
    const state = standing(product.status?.conditions, ["Ready"]);
    return (
        <section aria-label={shownName(product)} className="fw-stack">
            <h2 className="fw-row-gap fw-wrap"><Link to={pathOf("APIProduct", product.metadata?.namespace, product.metadata?.name)}>{shownName(product)}</Link> <StatusLabel isPlain word={product.spec?.publishStatus} tone="purple" /> <StatusLabel word={state.word} tone={state.isGood ? "green" : "grey"} title={state.message} /></h2>
            {product.spec?.description && <p className="fw-wrap">{product.spec.description}</p>}
            <Facts of={[[t("namespace"), product.metadata?.namespace], [t("target"), product.spec?.targetRef?.name], [t("approvalMode"), product.spec?.approvalMode], [t("plans"), [...told.values()].join("; ")]]} />
            <Unread of={[["PlanPolicy", looked]]} />
            <div><Button variant="secondary" onClick={props.onAsk}>{t("requestKey")}</Button></div>
        </section>
    );
}

function RequestKey(props: { product: APIProduct; onClose: () => void }): ReactNode {
    const { product } = props;
    const { plans, told, looked } = usePlans(product);
    const namespaces = useList(NAMESPACES);
    const names = namespaces.items.map(it => it.metadata?.name ?? "").filter(it => !isOfSystem(it)).sort();
    const [written, setWritten] = useState<{ name?: string; namespace?: string; plan?: string; useCase?: string }>({});
    const { user } = session();
    const beside = product.metadata?.namespace ?? "";
    const namespace = written.namespace ?? [beside, "default"].find(it => names.includes(it)) ?? names[0] ?? "default";
    // One plan is no choice; of several nobody knows which was meant.
    const plan = written.plan ?? (plans.length === 1 ? plans[0] : undefined) ?? "";
    const isComplete = plan !== "" && Boolean(written.useCase?.trim());
    const send = useAction(() => create(API_KEYS, {
        apiVersion: "devportal.kuadrant.io/v1alpha1", kind: "APIKey", metadata: { name: written.name ?? `${product.metadata?.name}-key`, namespace },
        spec: {
            apiProductRef: { name: product.metadata?.name ?? "", namespace: product.metadata?.namespace }, planTier: plan,
            useCase: written.useCase ?? "", requestedBy: { userId: user.name, email: user.email || undefined },
        },
    } as APIKey), t("keyRequested", { name: shownName(product) }));
    const submit = async (): Promise<void> => { if (isComplete && (await send.run())) props.onClose(); };
    const put = (change: typeof written): void => setWritten(before => ({ ...before, ...change }));
    return (
        <Modal isOpen variant="small" onClose={props.onClose} aria-labelledby="request-key">
            <ModalHeader title={`${t("requestKey")}: ${shownName(product)}`} labelId="request-key" />
            <ModalBody>
                <Form onSubmit={event => { event.preventDefault(); void submit(); }}>
                    <FormGroup label={t("keyName")} fieldId="key-name" isRequired><TextInput id="key-name" isRequired value={written.name ?? `${product.metadata?.name}-key`} onChange={(_event, name) => put({ name })} /></FormGroup>
                    <FormGroup label={t("inNamespace")} fieldId="key-namespace" isRequired>
                        {namespaces.error && names.length === 0
                            ? <><TextInput id="key-namespace" value={namespace} onChange={(_event, value) => put({ namespace: value })} /><p className="fw-muted">{t("namespaceNeeded")} {namespaces.error.message}</p></>
                            : <FormSelect id="key-namespace" value={namespace} onChange={(_event, value) => put({ namespace: value })}>{names.map(it => <FormSelectOption key={it} value={it} label={it} />)}</FormSelect>}
                    </FormGroup>
                    <FormGroup label={t("plan")} fieldId="key-plan" isRequired>
                        <FormSelect id="key-plan" value={plan} isRequired onChange={(_event, chosen) => put({ plan: chosen })}>{plan === "" && <FormSelectOption value="" label={t("choosePlan")} isPlaceholder />}{plans.map(it => <FormSelectOption key={it} value={it} label={told.get(it) ?? it} />)}</FormSelect>
                        <Unread of={[["PlanPolicy", looked]]} />
                        {plans.length === 0 && looked.state === "live" && <p className="fw-muted">{t("noPlans")}</p>}
                    </FormGroup>
                    <FormGroup label={t("useCase")} fieldId="key-use" isRequired><TextInput id="key-use" isRequired value={written.useCase ?? ""} onChange={(_event, useCase) => put({ useCase })} /></FormGroup>
                </Form>
                <Problem error={send.error} />
            </ModalBody>
            <ModalFooter>
                <Button isDisabled={!isComplete || send.isRunning} onClick={() => void submit()}>{t("send")}</Button>
                <Button variant="link" onClick={props.onClose}>{t("cancel")}</Button>
            </ModalFooter>
        </Modal>
    );
}

const judge = (request: APIKeyRequest, approved: boolean): Promise<unknown> => create(API_KEY_APPROVALS, {
    apiVersion: "devportal.kuadrant.io/v1alpha1", kind: "APIKeyApproval",
    metadata: { name: request.metadata?.name, namespace: request.metadata?.namespace },
    spec: { apiKeyRequestRef: { name: request.metadata?.name ?? "" }, approved, reviewedBy: session().user.name, reviewedAt: new Date().toISOString(), reason: approved ? "Approved" : "Rejected" },
} as unknown as APIKeyApproval);

export function Requests(): ReactNode {
    const found = useList(API_KEY_REQUESTS);
    const [refused, setRefused] = useState<APIKeyRequest>();
    const answer = useAction((request: APIKeyRequest) => judge(request, true), request => t("requestApproved", { name: request.metadata?.name ?? "" }));
    const waiting = found.items.filter(it => decided(it) === "Pending");
    const columns: Column<APIKeyRequest>[] = [
        { key: "product", title: t("product"), isOptional: true, render: it => it.spec?.apiProductRef.name },
        { key: "plan", title: t("plan"), width: "7rem", isOptional: true, render: it => it.spec?.planTier },
        { key: "who", title: t("requestedBy"), render: it => it.spec?.requestedBy.userId },
        { key: "use", title: t("useCase"), width: "2fr", render: it => <span title={it.spec?.useCase}>{it.spec?.useCase}</span> },
        {
            key: "actions", title: "", width: "10.5rem",
            render: it => (
                <span className="fw-row-gap">
                    <Button size="sm" isDisabled={answer.isRunning} onClick={() => void answer.run(it)}>{t("approve")}</Button>
                    <Button size="sm" variant="secondary" isDisabled={answer.isRunning} onClick={() => setRefused(it)}>{t("reject")}</Button>
                </span>
            ),
        },
    ];
    return (
        <Live of={found}>
            <Problem error={answer.error} />
            {waiting.length === 0 ? <p className="fw-muted">{t("noRequests")}</p> : <VirtualTable label={t("requests")} rows={waiting} columns={columns} rowKey={it => it.metadata?.uid ?? ""} />}
            {refused && (
                <Confirm title={t("rejectTitle", { who: refused.spec?.requestedBy.userId ?? "" })} action={t("reject")} onClose={() => setRefused(undefined)} told={t("requestRejected", { name: refused.metadata?.name ?? "" })} onConfirm={() => judge(refused, false)}>
                    <p className="fw-wrap">{t("rejectWhat", { who: refused.spec?.requestedBy.userId ?? "", product: refused.spec?.apiProductRef.name ?? "", plan: refused.spec?.planTier ?? "", use: refused.spec?.useCase ?? "" })}</p>
                </Confirm>
            )}
        </Live>
    );
}

/** How the key itself is seen: it is shown to who asks for it, and on no page. */
function Reveal(props: { of: APIKey; secret: string }): ReactNode {
    const command = sh`fairway api-key show ${props.of.metadata?.name} -n ${props.of.metadata?.namespace}`;
    return <span title={t("reveal", { name: props.secret })}><code>{command}</code> <CopyButton text={command} /></span>;
}

export function Keys(): ReactNode {
    const found = useList(API_KEYS);
    const [gone, setGone] = useState<APIKey>();
    const columns: Column<APIKey>[] = [
        { key: "name", title: t("name"), width: "1.5fr", render: it => <Link to={pathOf("APIKey", it.metadata?.namespace, it.metadata?.name)}>{it.metadata?.namespace}/{it.metadata?.name}</Link> },
        { key: "status", title: t("status"), width: "7rem", render: it => <StatusLabel word={decided(it)} /> },
        { key: "product", title: t("product"), width: "1.2fr", isOptional: true, render: it => it.spec?.apiProductRef.name },
        { key: "plan", title: t("plan"), width: "5rem", isOptional: true, render: it => it.spec?.planTier },
        { key: "created", title: t("created"), width: "5rem", isOptional: true, render: it => <Age of={it.metadata?.creationTimestamp} /> },
        { key: "reveal", title: t("toSeeIt"), width: "2.5fr", isOptional: true, render: it => it.status?.secretRef?.name && <Reveal of={it} secret={it.status.secretRef.name} /> },
        { key: "actions", title: "", width: "7rem", render: it => <Button size="sm" variant="link" isDanger onClick={() => setGone(it)}>{t("revoke")}</Button> },
    ];
    return (
        <Live of={found}>
            {found.items.length === 0 ? <p className="fw-muted">{t("noKeys")}</p> : <VirtualTable label={t("keys")} rows={found.items} columns={columns} rowKey={it => it.metadata?.uid ?? ""} rowHeight={52} />}
            {gone && (
                <ConfirmByName title={t("revokeTitle", { name: gone.metadata?.name ?? "" })} name={gone.metadata?.name ?? ""} action={t("revoke")} onClose={() => setGone(undefined)} told={t("keyDeleted", { name: gone.metadata?.name ?? "" })} onConfirm={() => remove(API_KEYS, gone.metadata?.namespace, gone.metadata?.name ?? "")}>
                    <p>{t("revokeWhat", { name: gone.metadata?.name ?? "" })}</p>
                </ConfirmByName>
            )}
        </Live>
    );
}
