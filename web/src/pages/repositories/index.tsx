// Hosted repositories: files, commits, pull requests with their plans.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import type { ReactNode } from "react";
import { Link, Route, Routes } from "react-router";
import { REPOSITORIES, type Repository, useList } from "../../api";
import { t } from "../../text/repositories";
import { Age, type Column, CommandHint, Empty, NotFound, PageHeader, sh, StatusLabel, VirtualTable } from "../../widgets";
import "../pieces/pieces.css";
import { Live } from "../pieces/parts";
import { CommitPage } from "./CommitPage";
import { ownerOf } from "./gitea";
import { PullRequest } from "./PullRequest";
import { RepositoryPage } from "./RepositoryPage";

export default function Repositories(): ReactNode {
    return (
        <Routes>
            <Route index element={<All />} />
            <Route path=":owner/:name" element={<RepositoryPage />} />
            <Route path=":owner/:name/commits/:sha" element={<CommitPage />} />
            <Route path=":owner/:name/pulls/:number" element={<PullRequest />} />
            <Route path="*" element={<NotFound />} />
        </Routes>
    );
}

const COLUMNS: Column<Repository>[] = [
    { key: "name", title: t("name"), render: it => <Link to={`/repositories/${ownerOf()}/${it.metadata?.name}`}>{it.metadata?.name}</Link> },
    { key: "description", title: t("description"), render: it => it.spec?.description ?? "", width: "2fr", isOptional: true },
    { key: "visibility", title: t("visibility"), render: it => <StatusLabel isPlain word={it.spec?.private === false ? t("public") : t("private")} tone="grey" />, width: "8rem" },
    { key: "created", title: t("created"), render: it => <Age of={it.metadata?.creationTimestamp} />, width: "6rem", isOptional: true },
];

function All(): ReactNode {
    const found = useList(REPOSITORIES);
    const sorted = [...found.items].sort((a, b) => (a.metadata?.name ?? "").localeCompare(b.metadata?.name ?? ""));
    return (
        <>
            <PageHeader title={t("title")} />
            <PageSection className="fw-stack">
                <Live of={found}>
                    {sorted.length === 0 ? <Empty title={t("none")}>{t("noneHelp")}</Empty> : <VirtualTable label={t("title")} rows={sorted} columns={COLUMNS} rowKey={it => it.metadata?.name ?? ""} />}
                </Live>
                <CommandHint commands={["kubectl get repositories.fairway.dev", sh`fairway repo create ${ownerOf()}/NAME --with-token`]} />
            </PageSection>
        </>
    );
}
