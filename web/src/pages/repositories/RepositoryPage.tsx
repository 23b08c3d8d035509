// One repository.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { PageSection } from "@patternfly/react-core/dist/dynamic/components/Page";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import type { ReactNode } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { type Asked, LIVE_MS, useAnswer } from "../../api";
import type { Branch, Entry } from "../../api/rest/gitea";
import { locale } from "../../text/t";
import { t } from "../../text/repositories";
import { Age, Answered, CodeView, type Column, CommandHint, Failed, Loading, PageHeader, sh, Stale, VirtualTable, Why } from "../../widgets";
import { AddressTabs, Problem } from "../pieces/parts";
import { COMMITS_AT_ONCE, gitea, MOST_BRANCHES, ownerOf, PULLS_AT_ONCE, textOf } from "./gitea";
import { Propose } from "./Propose";
import { PullState } from "./PullState";

interface Place { owner: string; name: string; branch: string }

export function RepositoryPage(): ReactNode {
    const { owner = "", name = "" } = useParams();
    const [params, setParams] = useSearchParams();
    const repo = useAnswer(`repo ${owner}/${name}`, signal => gitea.repo(owner, name, signal), LIVE_MS);
    const branches = useAnswer(`branches ${owner}/${name}`, signal => gitea.branches(owner, name, signal), LIVE_MS);
    const above = [{ to: "/repositories", label: t("title") }];
    if (!repo.answer) return repo.error ? <Failed isPage error={repo.error} again={repo.again} /> : <Loading isPage />;
    const branch = params.get("branch") ?? repo.answer.default_branch;
    const place = { owner, name, branch };
    return (
        <>
            <PageHeader title={`${owner}/${name}`} description={repo.answer.description} above={above} here={name} />
            <PageSection className="fw-stack">
                <FormSelect aria-label={t("branch")} value={branch} style={{ maxWidth: "20rem" }} onChange={(_event, value) => setParams(before => { before.set("branch", value); before.delete("path"); return before; })}>
                    {offered(branches.answer ?? [], branch).map(it => <FormSelectOption key={it.name} value={it.name} label={it.name} />)}
                </FormSelect>
                <Stale of={repo} />
                <Problem error={branches.error} title={t("branch")} />
                {(branches.answer?.length ?? 0) >= MOST_BRANCHES && <p className="fw-muted">{t("moreBranches", { n: MOST_BRANCHES })}</p>}
                {repo.answer.empty ? <p className="fw-muted">{t("empty")}</p> : (
                    <AddressTabs label={name} tabs={[
                        ["files", t("files"), () => <Files {...place} branches={branches} />],
                        ["commits", t("commits"), () => <Commits {...place} />],
                        ["pulls", t("pulls"), () => <Pulls {...place} branches={(branches.answer ?? []).map(it => it.name)} base={repo.answer?.default_branch ?? branch} />],
                        // Only this workspace's repositories are objects of it.
                        ...(owner === ownerOf() ? [["why", t("why"), () => <Why kind="Repository" name={name} />] as [string, string, () => ReactNode]] : []),
                    ]} />
                )}
                <CommandHint commands={[sh`fairway repo clone ${`${owner}/${name}`} --with-token`, sh`kubectl get repository ${name} -o yaml`]} />
            </PageSection>
        </>
    );
}

/** The branches to choose from; one that the address names is among them, whatever the list has. */
function offered(branches: readonly Branch[], chosen: string): readonly Branch[] {
    return branches.some(it => it.name === chosen) ? branches : [{ name: chosen }, ...branches];
}

/** Files may be large, and are others only when the branch has another commit: that is what is asked again and again. */
function Files(props: Place & { branches: Asked<Branch[]> }): ReactNode {
    const { branches, ...place } = props;
    if (!branches.answer && !branches.error) return <Loading />;
    return <FilesAt {...place} commit={branches.answer?.find(it => it.name === place.branch)?.commit?.id ?? ""} />;
}

function FilesAt(props: Place & { commit: string }): ReactNode {
    const { owner, name, branch, commit } = props;
    const [params, setParams] = useSearchParams();
    const path = params.get("path") ?? "";
    const found = useAnswer(`contents ${owner}/${name} ${branch} ${commit} ${path}`, signal => gitea.contents(owner, name, path, branch, signal));
    const go = (to: string): void => setParams(before => {
        if (to === "") before.delete("path");
        else before.set("path", to);
        return before;
    });
    const up = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    const head = path !== "" && <div className="fw-row-gap"><Button variant="secondary" size="sm" onClick={() => go(up)}>{t("up")}</Button><code className="fw-wrap">{path}</code></div>;
    return (
        <>
            {head}
            <Answered of={found}>{answer => (Array.isArray(answer) ? <Directory entries={answer} onOpen={go} /> : <File entry={answer} />)}</Answered>
        </>
    );
}

function Directory(props: { entries: Entry[]; onOpen: (path: string) => void }): ReactNode {
    const sorted = [...props.entries].sort((a, b) => Number(b.type === "dir") - Number(a.type === "dir") || a.name.localeCompare(b.name));
    const columns: Column<Entry>[] = [
        { key: "name", title: t("name"), width: "3fr", render: entry => <Button variant="link" isInline onClick={() => props.onOpen(entry.path)}>{entry.type === "dir" ? `${entry.name}/` : entry.name}</Button> },
        { key: "size", title: t("sizeOf"), isOptional: true, render: entry => (entry.type === "file" && entry.size !== undefined ? t("size", { n: entry.size.toLocaleString(locale()) }) : "") },
    ];
    return <VirtualTable label={t("files")} rows={sorted} columns={columns} rowKey={entry => entry.path} rowHeight={36} />;
}

function File(props: { entry: Entry }): ReactNode {
    const text = textOf(props.entry);
    if (text === undefined) return <p>{t("notText")}</p>;
    return <CodeView text={text} name={props.entry.name} isYaml={/\.ya?ml$/.test(props.entry.name)} />;
}

function Commits(props: Place): ReactNode {
    const { owner, name, branch } = props;
    const [params, setParams] = useSearchParams();
    const page = Math.max(1, Number(params.get("page")) || 1);
    const found = useAnswer(`commits ${owner}/${name} ${branch} ${page}`, signal => gitea.commits(owner, name, branch, page, signal), LIVE_MS);
    const go = (to: number): void => setParams(before => { before.set("page", String(to)); return before; });
    if (!found.answer) return found.error ? <Failed error={found.error} again={found.again} /> : <Loading />;
    return (
        <>
            <Stale of={found} />
            <ul className="fw-plain-list" aria-label={t("commits")}>
                {found.answer.map(it => (
                    <li key={it.sha}>
                        <div className="fw-wrap"><Link to={`/repositories/${owner}/${name}/commits/${it.sha}`}>{it.commit.message.split("\n")[0] || it.sha.slice(0, 10)}</Link></div>
                        <span className="fw-row-gap fw-muted"><code>{it.sha.slice(0, 10)}</code> {it.commit.author?.name} <Age isAgo of={it.commit.author?.date} /></span>
                    </li>
                ))}
            </ul>
            <Pages page={page} isLast={found.answer.length < COMMITS_AT_ONCE} onGo={go} />
        </>
    );
}

/** To what is newer and older; nothing if all is on one page. */
function Pages(props: { page: number; isLast: boolean; onGo: (to: number) => void }): ReactNode {
    const { page, isLast, onGo } = props;
    if (page === 1 && isLast) return null;
    return (
        <div className="fw-row-gap">
            <Button variant="secondary" size="sm" isDisabled={page === 1} onClick={() => onGo(page - 1)}>{t("newer")}</Button>
            <Button variant="secondary" size="sm" isDisabled={isLast} onClick={() => onGo(page + 1)}>{t("older")}</Button>
        </div>
    );
}

function Pulls(props: Place & { branches: string[]; base: string }): ReactNode {
    const { owner, name } = props;
    const [params, setParams] = useSearchParams();
    const state = params.get("state") === "closed" ? "closed" : "open";
    const page = Math.max(1, Number(params.get("pulls")) || 1);
    const found = useAnswer(`pulls ${owner}/${name} ${state} ${page}`, signal => gitea.pulls(owner, name, state, page, signal), LIVE_MS);
    const go = (to: number): void => setParams(before => { before.set("pulls", String(to)); return before; });
    if (found.error && !found.answer) return <Failed error={found.error} again={found.again} />;
    return (
        <>
            <Stale of={found} />
            <ToggleGroup aria-label={t("state")}>
                {(["open", "closed"] as const).map(it => <ToggleGroupItem key={it} text={t(it)} isSelected={state === it} onChange={() => setParams(before => { before.set("state", it); before.delete("pulls"); return before; })} />)}
            </ToggleGroup>
            {!found.answer ? <Loading /> : found.answer.length === 0 ? <p className="fw-muted">{t("noPulls")}</p> : (
                <ul className="fw-plain-list" aria-label={t("pulls")}>
                    {found.answer.map(it => (
                        <li key={it.number}>
                            <Link to={`/repositories/${owner}/${name}/pulls/${it.number}`}>#{it.number} {it.title}</Link>{" "}
                            <PullState of={it} /> <span className="fw-muted">{t("into", { head: it.head.ref, base: it.base.ref })} <Age isAgo of={it.created_at} /></span>
                        </li>
                    ))}
                </ul>
            )}
            {found.answer && <Pages page={page} isLast={found.answer.length < PULLS_AT_ONCE} onGo={go} />}
            <Propose {...props} />
        </>
    );
}
