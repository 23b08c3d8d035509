// A pull request: what it changes in files, and what that would change in Applications.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { type ReactNode, useState } from "react";
import { useParams } from "react-router";
import { LIVE_MS, useAction, useAnswer } from "../../api";
import type { Pull } from "../../api/rest/gitea";
import { t } from "../../text/repositories";
import { Age, Answered, CommandHint, Confirm, ConfirmByName, Failed, Loading, PageHeader, sh, Stale, StatusLabel, type Tone } from "../../widgets";
import { AddressTabs, Problem } from "../pieces/parts";
import { gitea, patchOf } from "./gitea";
import { Patch } from "./Patch";
import { Plan } from "./Plan";
import { PullState } from "./PullState";

export function PullRequest(): ReactNode {
    const { owner = "", name = "", number: text = "" } = useParams();
    const number = Number(text);
    const found = useAnswer(`pull ${owner}/${name} ${number}`, signal => gitea.pull(owner, name, number, signal), LIVE_MS);
    const [how, setHow] = useState<"merge" | "squash" | "rebase">();
    const [isClosing, setClosing] = useState(false);
    const reopen = useAction(async () => { await gitea.turn(owner, name, number, "open"); found.again(); }, t("reopened", { name: `#${number}` }));
    if (!found.answer) return found.error ? <Failed isPage error={found.error} again={found.again} /> : <Loading isPage />;
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
                    <Button variant="link" onClick={() => setClosing(true)}>{t("close")}</Button>
                </> || !pull.merged && <Button variant="secondary" isDisabled={reopen.isRunning} onClick={() => void reopen.run()}>{t("reopen")}</Button>}
            >
                <span className="fw-row-gap"><PullState of={pull} /> <span className="fw-muted">{t("into", { head: pull.head.ref, base: pull.base.ref })} {pull.user?.login && t("by", { who: pull.user.login })} <Age isAgo of={pull.created_at} /></span></span>
            </PageHeader>
            <PageSection className="fw-stack">
                <Stale of={found} />
                <Problem error={reopen.error} />
                {pull.body && <p className="fw-wrap">{pull.body}</p>}
                <Checks owner={owner} name={name} sha={pull.head.sha} />
                <AddressTabs label={pull.title} tabs={[
                    ["plan", t("plan"), () => (isOpen ? <Plan owner={owner} name={name} pull={pull} /> : <p className="fw-muted">{t("planOver")}</p>)],
                    ["diff", t("diff"), () => <Changes owner={owner} name={name} pull={pull} />],
                    ["comments", t("comments"), () => <Comments owner={owner} name={name} number={number} />],
                ]} />
                <CommandHint commands={[sh`fairway app plan --repo ${owner}/${name} --pull ${number}`]} />
            </PageSection>
            {how && (
                <ConfirmByName title={t(`${how}Title`, { base: pull.base.ref })} name={pull.base.ref} action={t(how)} onClose={() => setHow(undefined)} told={t("pullMerged", { name: `#${number}` })} onConfirm={async () => { await gitea.merge(owner, name, number, how); found.again(); }}>
                    <p className="fw-wrap">{t("mergeWhat", { title: pull.title, base: pull.base.ref })}</p>
                    {how !== "merge" && <p>{t(`${how}What`)}</p>}
                </ConfirmByName>
            )}
            {isClosing && (
                <Confirm title={t("closeTitle", { name: `#${number}` })} action={t("close")} onClose={() => setClosing(false)} told={t("pullClosed", { name: `#${number}` })} onConfirm={async () => { await gitea.turn(owner, name, number, "closed"); found.again(); }}>
                    <p className="fw-wrap">{t("closeWhat", { title: pull.title, head: pull.head.ref })}</p>
                </Confirm>
            )}
        </>
    );
}

/** Gitea's words for how a check stands. */
const TONES: Record<string, Tone> = { success: "green", warning: "orange", pending: "blue", failure: "red", error: "red" };

function Checks(props: { owner: string; name: string; sha: string }): ReactNode {
    const { owner, name, sha } = props;
    const found = useAnswer(`statuses ${owner}/${name} ${sha}`, signal => gitea.statuses(owner, name, sha, signal), LIVE_MS);
    if (found.error) return <Problem error={found.error} title={t("checks")} />;
    if (!found.answer?.length) return null;
    return (
        <ul className="fw-plain-list" aria-label={t("checks")}>
            {found.answer.map((it, at) => <li key={at} className="fw-row-gap"><StatusLabel word={it.context} tone={TONES[it.status ?? it.state ?? ""] ?? "grey"} /> <span className="fw-muted">{it.status ?? it.state}</span> {it.description}</li>)}
        </ul>
    );
}

function Comments(props: { owner: string; name: string; number: number }): ReactNode {
    const { owner, name, number } = props;
    const found = useAnswer(`comments ${owner}/${name} ${number}`, signal => gitea.comments(owner, name, number, signal), LIVE_MS);
    return (
        <Answered of={found}>
            {comments => comments.length === 0 ? <p className="fw-muted">{t("noComments")}</p> : (
                <>
                    <p className="fw-muted">{t("commentsNote")}</p>
                    {comments.map(it => (
                        <section key={it.id} aria-label={t("comments")}>
                            <p className="fw-muted">{t("by", { who: it.user?.login ?? "-" })} <Age isAgo of={it.created_at} /></p>
                            <pre className="fw-diff" tabIndex={0} role="region" aria-label={t("comments")}>{it.body.replace(/<!--[\s\S]*?-->\s*/g, "")}</pre>
                        </section>
                    ))}
                </>
            )}
        </Answered>
    );
}

/** A difference is large, and is another only when the head is. */
function Changes(props: { owner: string; name: string; pull: Pull }): ReactNode {
    const { owner, name, pull } = props;
    return <Patch of={useAnswer(`diff ${owner}/${name} ${pull.number} ${pull.head.sha}`, signal => patchOf(owner, name, `pulls/${pull.number}.diff`, signal))} />;
}
