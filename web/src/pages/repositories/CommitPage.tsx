// One commit: who made it, what it says, what it changed.

import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import type { ReactNode } from "react";
import { Link, useParams } from "react-router";
import { useAnswer } from "../../api";
import { t } from "../../text/repositories";
import { Age, CommandHint, Failed, Loading, PageHeader, sh } from "../../widgets";
import { Facts } from "../pieces/parts";
import { gitea, patchOf } from "./gitea";
import { Patch } from "./Patch";

export function CommitPage(): ReactNode {
    const { owner = "", name = "", sha = "" } = useParams();
    const found = useAnswer(`commit ${owner}/${name} ${sha}`, signal => gitea.commit(owner, name, sha, signal));
    const patch = useAnswer(`patch ${owner}/${name} ${sha}`, signal => patchOf(owner, name, `git/commits/${encodeURIComponent(sha)}.diff`, signal));
    if (found.error) return <Failed isPage error={found.error} again={found.again} />;
    if (!found.answer) return <Loading isPage />;
    const { commit, parents = [] } = found.answer;
    const [title = "", ...rest] = commit.message.split("\n");
    return (
        <>
            <PageHeader title={title} above={[{ to: "/repositories", label: t("title") }, { to: `/repositories/${owner}/${name}?tab=commits`, label: name }]} here={sha.slice(0, 10)} />
            <PageSection className="fw-stack">
                {rest.join("\n").trim() && <p className="fw-wrap">{rest.join("\n").trim()}</p>}
                <Facts of={[
                    [t("commit"), <code key="sha">{found.answer.sha}</code>],
                    [t("author"), <>{commit.author?.name} <span className="fw-muted">{commit.author?.email}</span> <Age isAgo of={commit.author?.date} /></>],
                    [t("parents"), parents.length === 0 ? undefined : <span className="fw-row-gap">{parents.map(it => <Link key={it.sha} to={`/repositories/${owner}/${name}/commits/${it.sha}`}><code>{it.sha.slice(0, 10)}</code></Link>)}</span>],
                ]} />
                <h2>{t("diff")}</h2>
                <Patch of={patch} />
                <CommandHint commands={[sh`git show ${sha}`]} />
            </PageSection>
        </>
    );
}
