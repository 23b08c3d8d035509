// Who did what in the workspace, out of the server's audit log.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { SearchInput } from "@patternfly/react-core/dist/dynamic/components/SearchInput";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../api/hooks";
import { LIVE_MS } from "../../api/repeat";
import { json } from "../../api/request";
import type { Activity as Answer, Deed } from "../../api/rest/portal";
import { workspace } from "../../api/session";
import { pageAt } from "../../links";
import { t } from "../../text/home";
import { Age, type Column, CommandHint, Empty, Failed, Loading, NoMatch, PageHeader, Stale, StatusLabel, VirtualTable } from "../../widgets";
import { auditCommand } from "./command";

function What({ deed }: { deed: Deed }) {
    const { group, resource, namespace, name, verb } = deed;
    const text = `${resource}${deed.subresource ? `/${deed.subresource}` : ""} ${[namespace, name].filter(Boolean).join("/")}`;
    const to = name && verb !== "delete" ? pageAt({ group, plural: resource, namespace, name }) : undefined;
    return to ? <Link to={to} title={text}>{text}</Link> : <span title={text}>{text}</span>;
}

const COLUMNS: Column<Deed>[] = [
    { key: "time", title: t("time"), width: "5rem", render: one => <Age of={one.time} /> },
    { key: "user", title: t("who"), render: one => <span title={one.user}>{one.user}</span> },
    { key: "verb", title: t("verb"), width: "6rem", render: one => one.verb },
    { key: "what", title: t("what"), width: "2fr", render: one => <What deed={one} /> },
    { key: "code", title: t("answer"), width: "6rem", isOptional: true, render: one => <StatusLabel word={String(one.code)} tone={one.code < 400 ? "green" : "red"} /> },
];

export default function Activity() {
    const [params, setParams] = useSearchParams();
    const [words, isRefusedOnly] = [params.get("q") ?? "", params.get("refused") === "1"];
    const asked = useAnswer("activity", async signal => {
        const answer = await json<Answer>("/api/fairway/activity", { query: { workspace: workspace(), limit: 1000 }, signal });
        return answer.items;
    }, LIVE_MS);
    const { again } = asked;
    const rows = useMemo(
        () => (asked.answer ?? []).filter(one => (!isRefusedOnly || one.code >= 400) && `${one.user} ${one.verb} ${one.resource} ${one.namespace} ${one.name}`.toLowerCase().includes(words.toLowerCase())),
        [asked.answer, words, isRefusedOnly],
    );
    const change = (key: string, value: string): void => {
        const next = new URLSearchParams(params);
        if (value) next.set(key, value);
        else next.delete(key);
        setParams(next, { replace: true });
    };
    const isMissing = asked.error?.status === 404;
    return (
        <>
            <PageHeader title={t("activity")} description={t("activityDescription")} actions={<Button variant="secondary" onClick={again}>{t("refresh")}</Button>}>
                <div className="fw-row-gap">
                    <SearchInput aria-label={t("search")} placeholder={t("search")} value={words} onChange={(_, value) => change("q", value)} onClear={() => change("q", "")} />
                    <Checkbox id="refused" label={t("failedOnly")} isChecked={isRefusedOnly} onChange={(_, is) => change("refused", is ? "1" : "")} />
                </div>
            </PageHeader>
            <PageSection isFilled>
                {isMissing && <Empty title={t("activityMissing")}>{t("activityMissingBody")}</Empty>}
                {asked.error && !isMissing && !asked.answer && <Failed error={asked.error} again={again} />}
                <Stale of={asked} />
                {!asked.answer && !asked.error && <Loading />}
                {asked.answer?.length === 0 && <Empty title={t("noActivity")} />}
                {asked.answer && asked.answer.length > 0 && rows.length === 0 && <NoMatch onClear={() => setParams({})} />}
                {rows.length > 0 && <VirtualTable label={t("activity")} rows={rows} columns={COLUMNS} rowKey={one => `${one.time} ${one.user} ${one.verb} ${one.resource} ${one.namespace} ${one.name} ${one.code}`} />}
                <p className="fw-muted">{t("auditHelp")}</p>
                <CommandHint commands={[auditCommand(workspace(), isRefusedOnly)]} />
            </PageSection>
        </>
    );
}
