// The templates that this workspace offers.

import { Card, CardBody, CardFooter, CardHeader, CardTitle } from "@patternfly/react-core/dist/dynamic/components/Card";
import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { entities } from "../../catalog/client";
import { type Entity, shortRef, specText, titleOf } from "../../catalog/entity";
import { t } from "../../text/create";
import { CommandHint, Empty, Failed, Loading, NoMatch, PageHeader } from "../../widgets";

function matches(template: Entity, words: string): boolean {
    const text = [titleOf(template), template.metadata.description, ...(template.metadata.tags ?? [])].join(" ").toLowerCase();
    return words.toLowerCase().split(/\s+/).every(word => text.includes(word));
}

export function Cards() {
    const [params, setParams] = useSearchParams();
    const words = params.get("q") ?? "";
    const asked = useAnswer("templates", signal => entities({ orderField: "metadata.name,asc" }, ["kind=template"], signal));
    const found = (asked.answer?.items ?? []).filter(one => matches(one, words));
    const search = (value: string): void => setParams(value ? { q: value } : {}, { replace: true });
    return (
        <>
            <PageHeader title={t("title")} description={t("description")}>
                <SearchInput className="fw-search" aria-label={t("search")} placeholder={t("search")} value={words} onChange={(_, value) => search(value)} onClear={() => search("")} />
            </PageHeader>
            <PageSection isFilled>
                {asked.error && <Failed error={asked.error} again={asked.again} />}
                {!asked.answer && !asked.error && <Loading />}
                {asked.answer?.items.length === 0 && <Empty title={t("noTemplates")}>{t("noTemplatesBody")}</Empty>}
                {asked.answer && asked.answer.items.length > 0 && found.length === 0 && <NoMatch onClear={() => search("")} />}
                <div className="fw-grid">
                    {found.map(one => (
                        <TemplateCard key={`${one.metadata.namespace}/${one.metadata.name}`} template={one} />
                    ))}
                </div>
                <CommandHint commands={["fairway template list", "fairway template show NAME", "fairway new NAME"]} />
            </PageSection>
        </>
    );
}

function TemplateCard({ template }: { template: Entity }) {
    const to = `/create/${template.metadata.namespace ?? "default"}/${template.metadata.name}`;
    const owner = specText(template, "owner");
    return (
        <Card isFullHeight>
            <CardHeader>
                <Label isCompact variant="outline">{specText(template, "type")}</Label>
            </CardHeader>
            <CardTitle component="h2">{titleOf(template)}</CardTitle>
            <CardBody>
                <p>{template.metadata.description}</p>
                <div className="fw-row-gap fw-top">
                    {(template.metadata.tags ?? []).map(tag => <Label key={tag} isCompact>{tag}</Label>)}
                </div>
            </CardBody>
            <CardFooter>
                {owner && <p className="fw-muted fw-below">{t("ownedBy", { owner: shortRef(owner) })}</p>}
                <Link to={to} className="pf-v6-c-button pf-m-primary" aria-label={`${t("chooseTemplate")} ${titleOf(template)}`}>{t("chooseTemplate")}</Link>
            </CardFooter>
        </Card>
    );
}
