// What will happen: the answers, the files of the repository, every object with the server's verdict, before anything is written.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core/dist/dynamic/components/DescriptionList";
import { Title } from "@patternfly/react-core/dist/dynamic/components/Title";
import { useState } from "react";
import { useNavigate } from "react-router";
import { useAction, useAnswer } from "../../api/hooks";
import { json } from "../../api/request";
import type { Begun, DryRun, ParameterSchema } from "../../api/rest/scaffolder";
import { splitSecrets, titlesOf } from "../../form/schema";
import { t } from "../../text/create";
import { CommandHint, Failed, Loading } from "../../widgets";
import { answerText } from "./answers";
import { newCommand } from "./command";
import { Foreseen } from "./Foreseen";
import { mayCreate } from "./schema";

interface Props {
    schema: ParameterSchema;
    answers: Record<string, unknown>;
    templateRef: string;
    onBack: () => void;
    /** The answers are the server's now. */
    onSent: () => void;
}

export function Review({ schema, answers, templateRef, onBack, onSent }: Props) {
    const questions = schema.steps.map(step => step.schema);
    const { values, secrets } = splitSecrets(questions, answers);
    const titles = titlesOf(questions);
    const order = [...titles.keys()];
    const asAsked = ([a]: [string, unknown], [b]: [string, unknown]): number => order.indexOf(a) - order.indexOf(b);
    const [keepOnFailure, setKeep] = useState(false);
    const navigate = useNavigate();
    const body = { templateRef, values, secrets };
    const asked = useAnswer(`dry-run ${JSON.stringify(body)}`, signal => json<DryRun>("/api/scaffolder/v2/dry-run", { method: "POST", body, signal }));
    const { run, isRunning, error } = useAction(async () => {
        const { id } = await json<Begun>("/api/scaffolder/v2/tasks", { method: "POST", body: { ...body, keepOnFailure } });
        onSent();
        const dot = id.indexOf(".");
        await navigate(`/voyages/${id.slice(0, dot)}/${id.slice(dot + 1)}`);
    });
    const command = newCommand({ templateRef, values, secrets: Object.keys(secrets), keep: keepOnFailure });
    return (
        <div className="fw-stack fw-top">
            <Title headingLevel="h2" size="lg">{t("answers")}</Title>
            <DescriptionList isHorizontal isCompact>
                {Object.entries(values).sort(asAsked).map(([key, value]) => <Answer key={key} name={titles.get(key) ?? key} value={answerText(questions, key, value)} />)}
                {Object.keys(secrets).map(key => <Answer key={key} name={titles.get(key) ?? key} value={t("hidden")} />)}
            </DescriptionList>
            <Title headingLevel="h2" size="lg">{t("reviewTitle")}</Title>
            {asked.error && <Failed error={asked.error} again={asked.again} />}
            {!asked.answer && !asked.error && <Loading text={t("dryRunning")} />}
            {asked.answer && <Foreseen foreseen={asked.answer} />}
            <Checkbox id="keep" label={t("keep")} isChecked={keepOnFailure} onChange={(_, is) => setKeep(is)} />
            {error && <Alert variant="danger" isInline title={error.message}>{error.advice}</Alert>}
            <div className="fw-row-gap">
                <Button variant="secondary" onClick={onBack}>{t("back")}</Button>
                <Button onClick={() => void run()} isLoading={isRunning} isDisabled={isRunning || !mayCreate(asked)}>{t("run")}</Button>
            </div>
            {Object.keys(secrets).length > 0 && <p className="fw-muted">{t("secretFiles")}</p>}
            <CommandHint commands={[`${command} --dry-run`, command]} />
        </div>
    );
}

function Answer({ name, value }: { name: string; value: string }) {
    return (
        <DescriptionListGroup>
            <DescriptionListTerm>{name}</DescriptionListTerm>
            <DescriptionListDescription className="fw-wrap">{value}</DescriptionListDescription>
        </DescriptionListGroup>
    );
}
