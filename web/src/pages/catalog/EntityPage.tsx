// An entity: what it is, what it is related to, what runs for it.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { Card, CardBody, CardTitle } from "@patternfly/react-core/dist/dynamic/components/Card";
import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from "@patternfly/react-core/dist/dynamic/components/DescriptionList";
import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { Tab, Tabs, TabTitleText } from "@patternfly/react-core/dist/dynamic/components/Tabs";
import { type ReactNode, useEffect } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { entityByName } from "../../catalog/client";
import { type Entity, entityPath, shortRef, specText, titleOf } from "../../catalog/entity";
import { useCatalogVersion, useEntityObject } from "../../catalog/live";
import { t } from "../../text/catalog";
import { CodeView, CommandHint, Failed, Loading, NotFound, PageHeader, SafeLink, sh, Stale, StatusLabel, YamlView } from "../../widgets";
import { ownerOf } from "./filters";
import { LiveCard } from "./LiveCard";
import { RelationsGraph } from "./RelationsGraph";

export function EntityPage() {
    const { kind = "", namespace = "", name = "" } = useParams();
    const ref = `${kind}:${namespace}/${name}`;
    const version = useCatalogVersion();
    const asked = useAnswer(`entity ${ref}`, signal => entityByName(kind, namespace, name, signal));
    const { again } = asked;
    useEffect(() => {
        if (version > 0) again();
    }, [version, again]);
    if (asked.error?.status === 404) return <NotFound>{t("absent", { ref })}</NotFound>;
    if (asked.error && !asked.answer) return <Failed isPage error={asked.error} again={again} />;
    if (!asked.answer) return <Loading isPage />;
    return <EntityView key={ref} entity={asked.answer} stale={<Stale of={asked} />} kind={kind} namespace={namespace} name={name} />;
}

function EntityView({ entity, stale, kind, namespace, name }: { entity: Entity; stale: ReactNode; kind: string; namespace: string; name: string }) {
    const object = useEntityObject(kind, namespace, name);
    const [params, setParams] = useSearchParams();
    const tab = params.get("tab") ?? "overview";
    const definition = specText(entity, "definition");
    return (
        <>
            <PageHeader title={titleOf(entity)} description={entity.metadata.description} above={[{ to: "/catalog", label: t("title") }, { to: `/catalog?kind=${encodeURIComponent(kind)}`, label: entity.kind }]} here={name} actions={<StatusLabel isPlain word={specText(entity, "lifecycle")} />}>
                {stale}
                {entity.metadata.annotations?.["backstage.io/orphan"] === "true" && <Alert isInline variant="warning" title={t("orphan")} />}
            </PageHeader>
            <PageSection isFilled>
                <Tabs activeKey={tab} onSelect={(_, key) => setParams({ tab: String(key) }, { replace: true })} aria-label={titleOf(entity)}>
                    <Tab eventKey="overview" title={<TabTitleText>{t("overview")}</TabTitleText>}>
                        {tab === "overview" && (
                            <div className="fw-split main fw-top">
                                <div className="fw-stack">
                                    <About entity={entity} />
                                    <LiveCard kind={kind} namespace={namespace} name={name} />
                                </div>
                                <div className="fw-stack">
                                    <Links entity={entity} />
                                </div>
                            </div>
                        )}
                    </Tab>
                    <Tab eventKey="relations" title={<TabTitleText>{t("relations")}</TabTitleText>}>{tab === "relations" && <RelationsGraph entity={entity} />}</Tab>
                    {definition !== "" && <Tab eventKey="definition" title={<TabTitleText>{t("definition")}</TabTitleText>}>{tab === "definition" && <CodeView text={definition} name={`${name}-definition`} />}</Tab>}
                    <Tab eventKey="yaml" title={<TabTitleText>{t("yaml")}</TabTitleText>}>{tab === "yaml" && <YamlView value={entity} name={`${name}.yaml`} />}</Tab>
                </Tabs>
                <CommandHint commands={[sh`fairway catalog get ${kind}:${namespace}/${name}`, ...(object ? [sh`kubectl get catalogentity ${object} -o yaml`] : [])]} />
            </PageSection>
        </>
    );
}

function About({ entity }: { entity: Entity }) {
    const owner = ownerOf(entity);
    const source = entity.metadata.annotations?.["backstage.io/source-location"]?.replace(/^url:/, "");
    return (
        <Card>
            <CardTitle component="h2">{t("about")}</CardTitle>
            <CardBody>
                <DescriptionList columnModifier={{ default: "1Col", md: "2Col" }} isCompact>
                    <Item name={t("owner")}>{owner && <Link to={entityPath(owner)}>{shortRef(owner)}</Link>}</Item>
                    <Item name={t("system")}>{specText(entity, "system") && <Link to={entityPath(`system:${specText(entity, "system").includes("/") ? "" : "default/"}${specText(entity, "system")}`)}>{specText(entity, "system")}</Link>}</Item>
                    <Item name={t("type")}>{specText(entity, "type")}</Item>
                    <Item name={t("lifecycle")}>{specText(entity, "lifecycle")}</Item>
                    <Item name={t("tags")}>{(entity.metadata.tags ?? []).map(tag => <Label key={tag} isCompact>{tag}</Label>)}</Item>
                    <Item name={t("sourceLocation")}>{source && <SafeLink to={source} />}</Item>
                </DescriptionList>
            </CardBody>
        </Card>
    );
}

function Item({ name, children }: { name: string; children: ReactNode }) {
    return (
        <DescriptionListGroup>
            <DescriptionListTerm>{name}</DescriptionListTerm>
            <DescriptionListDescription className="fw-wrap">{children || "–"}</DescriptionListDescription>
        </DescriptionListGroup>
    );
}

function Links({ entity }: { entity: Entity }) {
    const links = entity.metadata.links ?? [];
    return (
        <Card>
            <CardTitle component="h2">{t("links")}</CardTitle>
            <CardBody>
                {links.length === 0 && <p className="fw-muted">{t("noLinks")}</p>}
                <ul>{links.map((link, at) => <li key={at}><SafeLink to={link.url}>{link.title ?? link.url}</SafeLink></li>)}</ul>
            </CardBody>
        </Card>
    );
}
