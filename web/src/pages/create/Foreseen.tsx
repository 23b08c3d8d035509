// What the dry run found out, in the order in which it would happen.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core/dist/dynamic/components/DescriptionList";
import { ExpandableSection } from "@patternfly/react-core/dist/dynamic/components/ExpandableSection";
import { Title } from "@patternfly/react-core/dist/dynamic/components/Title";
import { useState } from "react";
import type { DryRun, Verdict } from "../../api/rest/scaffolder";
import { counted, t } from "../../text/create";
import { CodeView, StatusLabel } from "../../widgets";
import { type Fact, facts } from "./facts";

export function Foreseen({ foreseen: dry }: { foreseen: DryRun }) {
    const { foreseen } = dry;
    if (!foreseen) return null;
    const verdicts = [...foreseen.objects, ...foreseen.manifests];
    const unjudged = verdicts.filter(verdict => verdict.allowed === null).length;
    const good = unjudged === 0 ? t("succeeds") : t("succeedsSoFar", { n: unjudged, all: verdicts.length });
    return (
        <div className="fw-stack">
            <Alert variant={foreseen.succeeds ? "success" : "danger"} isInline title={foreseen.succeeds ? good : t("fails")}>
                {!foreseen.succeeds && <p className="fw-wrap">{foreseen.problem ?? t("failsBody")}</p>}
            </Alert>
            <Facts all={facts(foreseen)} />
            {foreseen.repositories.map(repository => (
                <section key={repository.url}>
                    <Title headingLevel="h3" className="fw-wrap">{t("repository", { url: repository.url })}</Title>
                    <p className="fw-muted">{counted("files", repository.files.length)}</p>
                    {repository.files.map(file => <File key={file.path} path={file.path} content={file.content ?? ""} />)}
                </section>
            ))}
            {verdicts.length > 0 && (
                <section>
                    <Title headingLevel="h3">{t("objects")}</Title>
                    <ul className="fw-events" aria-label={t("objects")}>
                        {verdicts.map((verdict, at) => <VerdictLine key={at} verdict={verdict} />)}
                    </ul>
                </section>
            )}
        </div>
    );
}

/** Where it will run, what it takes, and where it will be found. */
function Facts({ all }: { all: Fact[] }) {
    return (
        <DescriptionList isHorizontal isCompact>
            {all.map(fact => (
                <DescriptionListGroup key={fact.name}>
                    <DescriptionListTerm>{fact.name}</DescriptionListTerm>
                    <DescriptionListDescription className="fw-wrap">
                        {fact.lines.map(line => <div key={line}>{fact.tone ? <StatusLabel word={line} tone={fact.tone} /> : line}</div>)}
                    </DescriptionListDescription>
                </DescriptionListGroup>
            ))}
        </DescriptionList>
    );
}

function File({ path, content }: { path: string; content: string }) {
    const [isOpen, setOpen] = useState(false);
    return (
        <ExpandableSection toggleText={path} isExpanded={isOpen} onToggle={(_, is) => setOpen(is)} isIndented>
            {isOpen && <CodeView text={content} name={path} isYaml={/\.ya?ml$/.test(path)} />}
        </ExpandableSection>
    );
}

function VerdictLine({ verdict }: { verdict: Verdict }) {
    const word = verdict.allowed === null ? t("unjudged") : verdict.allowed ? t("allowed") : t("refused");
    const tone = verdict.allowed === null ? "grey" : verdict.allowed ? "green" : "red";
    return (
        <li>
            <span className="fw-row-gap">
                <StatusLabel word={word} tone={tone} />
                <span>{verdict.kind} {[verdict.namespace, verdict.name].filter(Boolean).join("/")}</span>
            </span>
            {verdict.message && <div className="fw-wrap fw-muted">{verdict.message}</div>}
        </li>
    );
}
