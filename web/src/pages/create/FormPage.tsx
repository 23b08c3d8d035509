// The questions of a template, page by page, then the review. The page number is in the address; the answers are not, since some are secret.
// Those that are not are kept until they are sent (`form/draft.ts`).

import { Alert, AlertActionCloseButton, AlertActionLink } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form as PatternFlyForm } from "@patternfly/react-core/dist/dynamic/components/Form";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { ProgressStep, ProgressStepper } from "@patternfly/react-core/dist/dynamic/components/ProgressStepper";
// Not from the package itself: that brings the harness of its tests along.
import Form from "@rjsf/core/lib/components/Form.js";
import { useEffect, useMemo, useRef, useState } from "react";
import { useParams, useSearchParams } from "react-router";
import { useAction, useAnswer } from "../../api/hooks";
import { session, workspace } from "../../api/session";
import { json } from "../../api/request";
import type { ParameterSchema } from "../../api/rest/scaffolder";
import { draftKey, dropDrafts, readDraft, shelf, writeDraft } from "../../form/draft";
import { fields } from "../../form/pickers";
import { judge } from "../../form/rules";
import { splitSecrets, splitUi } from "../../form/schema";
import { templates, widgets } from "../../form/templates";
import { validator } from "../../form/validator";
import { t } from "../../text/create";
import { Failed, Loading, PageHeader } from "../../widgets";
import { Review } from "./Review";
import { after, before, isConditional, shownOf, taken } from "./schema";

export type Answers = Record<string, unknown>;

export function FormPage() {
    const { namespace = "default", name = "" } = useParams();
    const path = `/api/scaffolder/v2/templates/${encodeURIComponent(namespace)}/template/${encodeURIComponent(name)}/parameter-schema`;
    const asked = useAnswer(path, signal => json<ParameterSchema>(path, { signal }));
    const title = asked.answer?.title ?? name;
    return (
        <>
            <PageHeader title={title} description={asked.answer?.description} above={[{ to: "/create", label: t("title") }]} here={title} />
            <PageSection isFilled>
                {asked.error && <Failed error={asked.error} again={asked.again} />}
                {!asked.answer && !asked.error && <Loading />}
                {asked.answer && <Wizard key={path} path={path} schema={asked.answer} templateRef={`template:${namespace}/${name}`} />}
            </PageSection>
        </>
    );
}

function Wizard({ path, schema, templateRef }: { path: string; schema: ParameterSchema; templateRef: string }) {
    const [params, setParams] = useSearchParams();
    const schemas = useMemo(() => schema.steps.map(step => step.schema), [schema]);
    const key = draftKey(session().user.name, workspace(), templateRef);
    const [kept] = useState(() => {
        dropDrafts(shelf(), { butOf: session().user.name });
        return readDraft(shelf(), key, schemas);
    });
    const [isTold, setTold] = useState(kept !== undefined);
    const [answers, setAnswers] = useState<Answers>(kept?.answers ?? {});
    const [pages, setPages] = useState(() => kept?.pages ?? shownOf(schema));
    // Nobody comes to a page whose predecessors were not answered, whatever the address says.
    const [reached, setReached] = useState(() => Math.max(after(pages, -1), kept?.reached ?? 0));
    const isChanged = useRef(false);
    const change = (given: Answers): void => {
        isChanged.current = true;
        setAnswers(given);
    };
    useEffect(() => {
        if (isChanged.current) writeDraft(shelf(), key, schemas, { answers, pages, reached });
    }, [key, schemas, answers, pages, reached]);
    const forget = (): void => {
        isChanged.current = false;
        dropDrafts(shelf(), { key });
    };
    const last = schema.steps.length;
    const wanted = Math.min(Math.max(0, Number(params.get("step") ?? 0) || 0), reached, last);
    const at = wanted < last && !pages[wanted] ? after(pages, wanted) : wanted;
    const previous = before(pages, at);
    // The form keeps what was typed into its fields, until it is another.
    const [round, setRound] = useState(0);
    const go = (step: number): void => {
        setTold(false);
        setReached(before => Math.max(before, step));
        setParams({ step: String(step) });
    };
    const next = useAction(async (given: Answers) => {
        // Conditions of pages are expressions: the server works them out, from what is not secret.
        let now = pages;
        if (isConditional(schema)) {
            const { values } = splitSecrets(schemas, given);
            now = shownOf(await json<ParameterSchema>(path, { method: "POST", body: { values } }));
        }
        setPages(now);
        const step = after(now, at);
        // What this answer leads to was not answered yet, though pages behind it may have been.
        const open = now.findIndex((is, n) => is && !pages[n] && n > at);
        if (open >= 0) setReached(before => Math.min(before, open));
        go(step);
    });
    const heading = useRef<HTMLHeadingElement>(null);
    const shown = useRef(at);
    // The button that was pressed is gone: who does not see the page hears where he is, and goes on from there.
    useEffect(() => {
        if (shown.current === at) return;
        shown.current = at;
        heading.current?.focus();
    }, [at]);
    const titles = [...schema.steps.map((step, n) => step.title ?? t("page", { n: n + 1, all: last })), t("review")];
    const stages = titles.map((title, n) => ({ title, n })).filter(({ n }) => n === last || pages[n]);
    return (
        <div>
            <ProgressStepper aria-label={t("steps")} className="fw-stepper">
                {stages.map(({ title, n }) => (
                    <ProgressStep key={n} id={`step-${n}`} titleId={`step-title-${n}`} variant={n < at ? "success" : n === at ? "info" : "pending"} isCurrent={n === at} aria-label={title}>
                        {title}
                    </ProgressStep>
                ))}
            </ProgressStepper>
            {isTold && (
                <Alert
                    variant="info" isInline className="fw-top" title={t("draftBack")} actionClose={<AlertActionCloseButton onClose={() => setTold(false)} />}
                    actionLinks={<AlertActionLink onClick={() => {
                        forget();
                        setTold(false);
                        setAnswers({});
                        setPages(shownOf(schema));
                        setReached(after(shownOf(schema), -1));
                        setRound(round + 1);
                        setParams({});
                    }}>{t("startAgain")}</AlertActionLink>}
                >
                    {t("draftBackBody")}
                </Alert>
            )}
            <h2 ref={heading} tabIndex={-1} className="pf-v6-c-title pf-m-xl fw-top">{titles[at]}</h2>
            {at < last ? (
                <Questions key={`${round} ${at}`} step={schema.steps[at]} at={at} answers={answers} onBack={previous === undefined ? undefined : () => go(previous)}
                    onChange={change} isBusy={next.isRunning}
                    onNext={given => {
                        change(given);
                        void next.run(given);
                    }}
                />
            ) : (
                <Review schema={schema} answers={taken(schema, pages, answers)} templateRef={templateRef} onBack={() => go(previous ?? 0)} onSent={forget} />
            )}
            {next.error && <Alert variant="danger" isInline title={next.error.message}>{next.error.advice}</Alert>}
        </div>
    );
}

interface QuestionsProps {
    step: ParameterSchema["steps"][number] | undefined;
    at: number;
    answers: Answers;
    onBack?: () => void;
    onChange: (answers: Answers) => void;
    onNext: (answers: Answers) => void;
    isBusy: boolean;
}

function Questions({ step, at, answers, onBack, onChange, onNext, isBusy }: QuestionsProps) {
    const { schema, uiSchema } = useMemo(() => {
        // Title and description of the page stand above it already.
        return splitUi({ type: "object", ...step?.schema, title: undefined, description: undefined });
    }, [step]);
    return (
        <div className="fw-form">
            {step?.description && <p>{step.description}</p>}
            <Form
                idPrefix={`page${at}`}
                tagName={PatternFlyForm as never}
                schema={schema}
                uiSchema={{ ...uiSchema, "ui:submitButtonOptions": { norender: true } }}
                formData={answers}
                validator={validator}
                templates={templates}
                widgets={widgets}
                fields={fields as never}
                formContext={{ answers }}
                customValidate={judge}
                showErrorList={false}
                focusOnFirstError
                // Each is told at its question; without this they go to the console as well.
                onError={() => undefined}
                noHtml5Validate
                onChange={event => onChange((event.formData ?? {}) as Answers)}
                onSubmit={event => onNext((event.formData ?? {}) as Answers)}
            >
                <div className="fw-row-gap">
                    {onBack && <Button variant="secondary" onClick={onBack}>{t("back")}</Button>}
                    <Button type="submit" isLoading={isBusy} isDisabled={isBusy}>{t("next")}</Button>
                </div>
            </Form>
        </div>
    );
}
