// A pull request: what it changes in files, and what that would change in Applications.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { type ReactNode, useState } from "react";
import { useParams } from "react-router";
import { useAction, useAnswer } from "../../api";
import { Age, CommandHint, ConfirmByName, Failed, Loading, PageHeader, sh, StatusLabel } from "../../widgets";
import { AddressTabs, Problem } from "../pieces/parts";
import { gitea, type Pull, pullDiff } from "./gitea";
import { t } from "./text";

export function PullRequest(): ReactNode {
    const { owner = "", name = "", number: text = "" } = useParams();
    const number = Number(text);
    const found = useAnswer(`pull ${owner}/${name} ${number}`, signal => gitea.pull(owner, name, number, signal));
    const [how, setHow] = useState<string>();
    const close = useAction(async () => { await gitea.close(owner, name, number); found.again(); });
    if (found.error) return <Failed error={found.error} again={found.again} />;
    if (!found.answer) return <Loading />;
    const pull = found.answer;
    const isOpen = pull.state === "open" && !pull.merged;
    return (
        <>
            <PageHeader
                title={`#${pull.number} ${pull.title}`} above={[{ to: "/repositories", label: t("title") }, { to: `/repositories/${owner}/${name}?tab=pulls`, label: name }]} here={`#${pull.number}`}
                actions={isOpen && <>
                    <Button onClick={() => setHow("merge")}>{t("merge")}</Button>
                    <Button variant="secondary" onClick={() => setHow("squash")}>{t("squash")}</Button>
                    <Button variant="secondary" onClick={() => setHow("rebase")}>{t("rebase")}</Button>
                    <Button variant="link" isDisabled={close.isRunning} onClick={() => void close.run()}>{t("close")}</Button>
                </>}
            >
                <span className="fw-row-gap"><StatusLabel word={pull.merged ? "Merged" : isOpen ? "Open" : "Closed"} /> <span className="fw-muted">{t("into", { head: pull.head.ref, base: pull.base.ref })} {pull.user?.login && t("by", { who: pull.user.login })} <Age of={pull.created_at} /></span></span>
            </PageHeader>
            <PageSection className="fw-stack">
                <Problem error={close.error} />
                {pull.body && <p className="fw-wrap">{pull.body}</p>}
                <AddressTabs label={pull.title} tabs={[
                    ["plan", t("plan"), () => <Plan owner={owner} name={name} pull={pull} />],
                    ["diff", t("diff"), () => <Changes owner={owner} name={name} number={number} />],
                ]} />
                <CommandHint commands={[sh`fairway app plan --repo ${owner}/${name} --branch ${pull.head.ref}`]} />
            </PageSection>
            {how && (
                <ConfirmByName title={t("mergeTitle", { base: pull.base.ref })} name={pull.base.ref} action={t("merge")} onClose={() => setHow(undefined)} onConfirm={async () => { await gitea.merge(owner, name, number, how); found.again(); }}>
                    <p>{t("mergeWhat", { title: pull.title, base: pull.base.ref })}</p>
                </ConfirmByName>
            )}
        </>
    );
}

/** The plan is what Fairway writes as a status of the head and as a comment. */
function Plan(props: { owner: string; name: string; pull: Pull }): ReactNode {
    const { owner, name, pull } = props;
    const statuses = useAnswer(`statuses ${owner}/${name} ${pull.head.sha}`, signal => gitea.statuses(owner, name, pull.head.sha, signal));
    const comments = useAnswer(`comments ${owner}/${name} ${pull.number}`, signal => gitea.comments(owner, name, pull.number, signal));
    if (comments.error) return <Failed error={comments.error} again={comments.again} />;
    if (!comments.answer) return <Loading />;
    return (
        <>
            {(statuses.answer ?? []).map((it, at) => <span key={at} className="fw-row-gap"><StatusLabel word={it.context} tone={(it.status ?? it.state) === "success" ? "green" : (it.status ?? it.state) === "warning" ? "orange" : "red"} /> {it.description}</span>)}
            {comments.answer.length === 0 && (statuses.answer ?? []).length === 0 && <p className="fw-muted">{t("noPlan")}</p>}
            {comments.answer.map(it => (
                <section key={it.id} aria-label={t("comments")}>
                    <p className="fw-muted">{it.user?.login} <Age of={it.created_at} /></p>
                    <pre className="fw-diff" tabIndex={0} role="region" aria-label={t("plan")}>{it.body.replace(/<!--[\s\S]*?-->\s*/g, "")}</pre>
                </section>
            ))}
        </>
    );
}

function Changes(props: { owner: string; name: string; number: number }): ReactNode {
    const { owner, name, number } = props;
    const found = useAnswer(`diff ${owner}/${name} ${number}`, signal => pullDiff(owner, name, number, signal));
    if (found.error) return <Failed error={found.error} again={found.again} />;
    if (found.answer === undefined) return <Loading />;
    const kind = (line: string): string => (/^\+(?!\+\+ )/.test(line) ? "added" : /^-(?!-- )/.test(line) ? "removed" : "same");
    return (
        <>
            {found.answer.length >= 1_000_000 && <p className="fw-muted">{t("large")}</p>}
            <pre className="fw-diff" tabIndex={0} role="region" aria-label={t("diff")}>{found.answer.split("\n").slice(0, 10_000).map((line, at) => <span key={at} className={kind(line)}>{line || " "}</span>)}</pre>
        </>
    );
}
