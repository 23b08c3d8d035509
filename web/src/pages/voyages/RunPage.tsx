// One run: its steps with their logs as they are written, what came of it, and what can be wished of it.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { ProgressStep, ProgressStepper, type ProgressStepProps } from "@patternfly/react-core/dist/dynamic/components/ProgressStepper";
import { Tab, Tabs, TabTitleText } from "@patternfly/react-core/dist/dynamic/components/Tabs";
import { Title } from "@patternfly/react-core/dist/dynamic/components/Title";
import { useEffect, useRef, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { useAction, useList, useObject } from "../../api/hooks";
import { APPLICATIONS, type Voyage, VOYAGES } from "../../api/kinds";
import { patch } from "../../api/kubernetes";
import { session } from "../../api/session";
import { shortRef } from "../../catalog/entity";
import { t } from "../../text/create";
import { t as shell } from "../../text/shell";
import { Age, CommandHint, ConfirmByName, duration, Events, Failed, Loading, NotFound, PageHeader, SafeLink, sh, StatusLabel, useNow, Why, YamlView } from "../../widgets";
import { runTitle, spanOf } from "./runs";
import { grownOf, linksBeside, linksOf, type Step, stepsOf, textsOf, thingsOf, wishesOf } from "./steps";

const VARIANTS: Record<string, ProgressStepProps["variant"]> = { completed: "success", failed: "danger", running: "info", undone: "warning", skipped: "default" };

export function RunPage() {
    const { namespace = "", name = "" } = useParams();
    const { object, state, error } = useObject(VOYAGES, namespace, name);
    if (state === "failed" && error) return <Failed isPage error={error} />;
    if (state === "absent") return <NotFound>{t("absent", { name, namespace })}</NotFound>;
    if (!object) return <Loading isPage />;
    return <Run voyage={object} namespace={namespace} name={name} />;
}

function Run({ voyage, namespace, name }: { voyage: Voyage; namespace: string; name: string }) {
    const [params, setParams] = useSearchParams();
    const [asking, setAsking] = useState<"cancel" | "decommission">();
    const now = useNow();
    const steps = stepsOf(voyage);
    const span = spanOf(voyage);
    const wishes = wishesOf(voyage);
    const wish = useAction((spec: object) => patch(VOYAGES, namespace, name, { spec }), t("retryRequested", { name }));
    const tab = params.get("tab") ?? "log";
    const current = params.get("step") ?? (steps.find(step => step.state === "running" || step.state === "failed") ?? steps.findLast(step => step.state !== "pending" && step.state !== "skipped"))?.id;
    const chosen = steps.find(step => step.id === current);
    const set = (key: string, value: string): void => {
        const next = new URLSearchParams(params);
        next.set(key, value);
        setParams(next, { replace: true });
    };
    const actions = (
        <>
            <StatusLabel word={voyage.status?.phase ?? "Pending"} tone={voyage.status?.phase === "Running" ? "blue" : undefined} />
            {wishes.retry && <Button variant="secondary" isLoading={wish.isRunning} onClick={() => void wish.run({ attempt: (voyage.status?.attempt ?? 0) + 1, cancel: false })}>{t("retry")}</Button>}
            {wishes.cancel && <Button variant="secondary" isDanger onClick={() => setAsking("cancel")}>{t("cancelRun")}</Button>}
            {wishes.decommission && <Button variant="secondary" isDanger onClick={() => setAsking("decommission")}>{t("decommission")}</Button>}
        </>
    );
    return (
        <>
            <PageHeader title={runTitle(voyage)} description={`${shortRef(voyage.spec.template)} · ${name}`} above={[{ to: "/voyages", label: t("runs") }]} here={name} actions={actions}>
                <p className="fw-muted">
                    {t("startedBy")} {voyage.spec.requestedBy?.username} · <Age isAgo of={voyage.metadata?.creationTimestamp} /> · {t("took")} {duration(span.from, span.to, now)}
                </p>
                {voyage.status?.message && <Alert isInline variant={voyage.status.phase === "Failed" ? "danger" : "info"} title={voyage.status.message} />}
                {wish.error && <Alert isInline variant="danger" title={wish.error.message}>{wish.error.advice}</Alert>}
            </PageHeader>
            <PageSection isFilled>
                <Tabs activeKey={tab} onSelect={(_, key) => set("tab", String(key))} aria-label={name}>
                    <Tab eventKey="log" title={<TabTitleText>{t("steps")}</TabTitleText>}>
                        {tab === "log" && (
                            <div className="fw-run">
                                <ProgressStepper isVertical aria-label={t("steps")}>
                                    {steps.map(step => (
                                        <ProgressStep key={step.id} id={step.id} titleId={`${step.id}-title`} variant={VARIANTS[step.state] ?? "pending"} isCurrent={step.state === "running"} description={step.state === "skipped" ? step.state : `${step.state} ${duration(step.startedAt, step.endedAt, now)}`} aria-label={`${step.name}: ${step.state}`}>
                                            <Button variant="link" isInline onClick={() => set("step", step.id)} className={step.id === current ? "fw-current" : undefined} aria-current={step.id === current ? "step" : undefined}>{step.name}</Button>
                                        </ProgressStep>
                                    ))}
                                </ProgressStepper>
                                {/* Beside the steps: they stay where they are when the last of them is done. */}
                                <div className="fw-stack">
                                    {voyage.status?.phase === "Succeeded" && !params.has("step") && <Output voyage={voyage} />}
                                    {chosen && <StepLog step={chosen} />}
                                    {voyage.status?.phase === "Succeeded" && params.has("step") && <Output voyage={voyage} />}
                                </div>
                            </div>
                        )}
                    </Tab>
                    <Tab eventKey="events" title={<TabTitleText>{shell("events")}</TabTitleText>}>{tab === "events" && <Events kind="Voyage" namespace={namespace} name={name} />}</Tab>
                    <Tab eventKey="why" title={<TabTitleText>{shell("why")}</TabTitleText>}>{tab === "why" && <Why kind="Voyage" namespace={namespace} name={name} />}</Tab>
                    <Tab eventKey="yaml" title={<TabTitleText>{shell("yaml")}</TabTitleText>}>{tab === "yaml" && <YamlView value={voyage} name={`${name}.yaml`} />}</Tab>
                </Tabs>
                <CommandHint commands={[sh`fairway voyage get ${name} -n ${namespace}`, sh`fairway voyage logs ${name} -n ${namespace}`, sh`kubectl get voyage ${name} -n ${namespace} -o yaml`]} />
            </PageSection>
            {asking === "cancel" && (
                <ConfirmByName title={t("cancelTitle", { name })} name={name} action={t("cancelRun")} onClose={() => setAsking(undefined)} told={t("cancelRequested", { name })} onConfirm={() => patch(VOYAGES, namespace, name, { spec: { cancel: true } })}>
                    <p>{t("cancelBody")}</p>
                    <MadeSoFar steps={steps} />
                </ConfirmByName>
            )}
            {asking === "decommission" && (
                <ConfirmByName title={t("decommissionTitle", { name })} name={name} action={t("decommission")} onClose={() => setAsking(undefined)} told={t("decommissionRequested", { name })} onConfirm={() => patch(VOYAGES, namespace, name, { spec: { decommission: true } })}>
                    <p>{t("decommissionBody")}</p>
                    <MadeSoFar steps={steps} />
                </ConfirmByName>
            )}
        </>
    );
}

/** What goes with the run. */
function MadeSoFar({ steps }: { steps: Step[] }) {
    const made = steps.flatMap(step => step.made);
    if (made.length === 0) return <p>{t("nothingMade")}</p>;
    return (
        <>
            <p>{t("decommissionMade")}</p>
            <ul className="fw-long-list" tabIndex={0} aria-label={t("decommissionMade")}>{made.map((one, at) => <li key={at} className="fw-wrap">{one}</li>)}</ul>
        </>
    );
}

function StepLog({ step }: { step: Step }) {
    const end = useRef<HTMLDivElement>(null);
    useEffect(() => {
        if (step.state === "running") end.current?.scrollIntoView({ block: "nearest" });
    }, [step.log.length, step.state]);
    return (
        <section aria-label={`${t("log")} ${step.name}`}>
            <Title headingLevel="h2">{step.name}</Title>
            <p className="fw-muted">{step.action}</p>
            {step.message && <Alert isInline variant="danger" title={step.message} />}
            <pre className="fw-code" tabIndex={0} role="log" aria-label={t("log")}>
                {step.log.length === 0 && t(step.state === "skipped" ? "notWanted" : "noLog")}
                {step.log.map((line, at) => <div key={at}><span className="c">{line.at?.slice(11, 19)} </span>{line.text}</div>)}
                <div ref={end} />
            </pre>
            {step.made.length > 0 && <p className="fw-wrap">{t("made")}: {step.made.join(", ")}</p>}
        </section>
    );
}

function Output({ voyage }: { voyage: Voyage }) {
    const [notes, made] = [textsOf(voyage), thingsOf(voyage)];
    const applications = useList(APPLICATIONS);
    const things = [...made, ...grownOf(made, applications.items)];
    const links = linksBeside(things, linksOf(voyage), session().gitUrl);
    if (links.length + notes.length + things.length === 0) return null;
    return (
        <section className="fw-stack">
            <Title headingLevel="h2">{t("output")}</Title>
            {things.length > 0 && <ul className="fw-things" aria-label={t("things")}>{things.map(one => <li key={one.to}>{one.kind} <Link to={one.to}>{one.name}</Link></li>)}</ul>}
            {links.length > 0 && <ul className="fw-things" aria-label={t("links")}>{links.map(link => <li key={link.url}><SafeLink to={link.url}>{link.title}</SafeLink></li>)}</ul>}
            {notes.map((note, at) => (
                <div key={at}>
                    <strong>{note.title}</strong>
                    <pre className="fw-wrap">{note.content}</pre>
                </div>
            ))}
        </section>
    );
}
