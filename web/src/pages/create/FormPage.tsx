// The questions of a template, page by page, then the review. The page number is in the address; the answers are not, since some are secret.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Form as PatternFlyForm } from "@patternfly/react-core/dist/dynamic/components/Form";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { ProgressStep, ProgressStepper } from "@patternfly/react-core/dist/dynamic/components/ProgressStepper";
// Not from the package itself: that brings the harness of its tests along.
import Form from "@rjsf/core/lib/components/Form.js";
import { useEffect, useMemo, useRef, useState } from "react";
import { useParams, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { json } from "../../api/request";
import { fields } from "../../form/pickers";
import { splitUi } from "../../form/schema";
import { templates, widgets } from "../../form/templates";
import { validator } from "../../form/validator";
import { t } from "../../text/create";
import { Failed, Loading, PageHeader } from "../../widgets";
import { Review } from "./Review";
import type { ParameterSchema } from "./types";

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
                {asked.answer && <Wizard key={path} schema={asked.answer} templateRef={`template:${namespace}/${name}`} name={name} />}
            </PageSection>
        </>
    );
}

function Wizard({ schema, templateRef, name }: { schema: ParameterSchema; templateRef: string; name: string }) {
    const [params, setParams] = useSearchParams();
    const [answers, setAnswers] = useState<Answers>({});
    // Nobody comes to a page whose predecessors were not answered, whatever the address says.
    const [reached, setReached] = useState(0);
    const last = schema.steps.length;
    const at = Math.min(Math.max(0, Number(params.get("step") ?? 0) || 0), reached, last);
    const go = (step: number): void => {
        setReached(before => Math.max(before, step));
        setParams({ step: String(step) });
    };
    const heading = useRef<HTMLDivElement>(null);
    // Newer browsers answer scrolling with a promise, which an effect must not return.
    useEffect(() => void heading.current?.scrollIntoView({ block: "nearest" }), [at]);
    const titles = [...schema.steps.map((step, n) => step.title ?? t("page", { n: n + 1, all: last })), t("review")];
    return (
        <div ref={heading}>
            <ProgressStepper aria-label={t("steps")} className="fw-stepper">
                {titles.map((title, n) => (
                    <ProgressStep key={n} id={`step-${n}`} titleId={`step-title-${n}`} variant={n < at ? "success" : n === at ? "info" : "pending"} isCurrent={n === at} aria-label={title}>
                        {title}
                    </ProgressStep>
                ))}
            </ProgressStepper>
            {at < last ? (
                <Questions key={at} step={schema.steps[at]} at={at} answers={answers} onBack={at > 0 ? () => go(at - 1) : undefined}
                    onChange={setAnswers}
                    onNext={given => {
                        setAnswers(given);
                        go(at + 1);
                    }}
                />
            ) : (
                <Review schema={schema} answers={answers} templateRef={templateRef} name={name} onBack={() => go(last - 1)} />
            )}
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
}

function Questions({ step, at, answers, onBack, onChange, onNext }: QuestionsProps) {
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
                showErrorList={false}
                focusOnFirstError
                noHtml5Validate
                onChange={event => onChange((event.formData ?? {}) as Answers)}
                onSubmit={event => onNext((event.formData ?? {}) as Answers)}
            >
                <div className="fw-row-gap">
                    {onBack && <Button variant="secondary" onClick={onBack}>{t("back")}</Button>}
                    <Button type="submit">{t("next")}</Button>
                </div>
            </Form>
        </div>
    );
}
