// Backstage's fields about repositories: where one is or will be, and a branch of it. Those of this Fairway are offered; of other hosts nobody
// here may ask.

import { FormGroup } from "@patternfly/react-core/dist/dynamic/components/Form";
import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/dynamic/components/HelperText";
import type { FieldProps } from "@rjsf/utils";
import { useEffect, useState } from "react";
import { useAnswer } from "../api/hooks";
import { REPOSITORIES } from "../api/kinds";
import { list } from "../api/kubernetes";
import { session } from "../api/session";
import { gitea, ownerOf } from "../pages/repositories/gitea";
import { t } from "../text/create";
import { OneOf } from "./Combobox";
import { isOwnHost, type Offer, type Repo, repoOf, repoUrl } from "./offers";
import { answerOf, common, set, textsOf } from "./options";

/** A name that is still being written is not asked about. */
const PAUSE_MS = 400;

const offersOf = (names: readonly string[]): Offer[] => names.map(name => ({ value: name, label: name }));

/** Where nothing was said, what is most likely: the only one that is allowed, else this workspace's own. */
function begun(value: string | undefined, hosts: string[], owners: string[], repos: string[]): Repo {
    const { host, owner, repo } = repoOf(value);
    const where = host || (hosts[0] ?? "fairway");
    const own = isOwnHost(where, session().gitUrl) ? ownerOf() : "";
    return { host: where, owner: owner || (owners.length > 0 ? (owners.length === 1 ? owners[0] ?? "" : "") : own), repo: repo || (repos.length === 1 ? (repos[0] ?? "") : "") };
}

/** Host, owner and name of a repository, as `fairway?owner=..&repo=..`. */
export function RepoUrlPicker(props: FieldProps) {
    const [hosts, owners, repos] = [textsOf(props, "allowedHosts"), textsOf(props, "allowedOwners"), textsOf(props, "allowedRepos")];
    const [parts, setParts] = useState(() => begun(answerOf(props), hosts, owners, repos));
    const { id, isInvalid, isRequired, isDisabled } = common(props);
    const isOwn = isOwnHost(parts.host, session().gitUrl) && (parts.owner === "" || parts.owner === ownerOf());
    const asked = useAnswer(`repo-names ${isOwn && repos.length === 0}`, async signal => (isOwn && repos.length === 0 ? (await list(REPOSITORIES, {}, { signal })).items.map(it => it.metadata?.name ?? "").filter(Boolean).sort() : []));
    useEffect(() => {
        // What goes without saying is answered already.
        if (answerOf(props) === undefined && repoUrl(parts) !== undefined) set(props, repoUrl(parts));
        // Once: afterwards it is the person's.
        // eslint-disable-next-line react-hooks/exhaustive-deps
    }, []);
    const change = (part: keyof Repo, value: string | undefined): void => {
        const next = { ...parts, [part]: value?.trim() ?? "" };
        setParts(next);
        set(props, repoUrl(next));
    };
    const shown: { part: keyof Repo; label: string; offers: string[]; isFree: boolean; isFixed: boolean }[] = [
        { part: "host", label: t("repoHost"), offers: hosts.length > 0 ? hosts : ["fairway"], isFree: false, isFixed: hosts.length <= 1 },
        { part: "owner", label: t("repoOwner"), offers: owners.length > 0 ? owners : isOwnHost(parts.host, session().gitUrl) ? [ownerOf()] : [], isFree: owners.length === 0, isFixed: owners.length === 1 },
        { part: "repo", label: t("repoName"), offers: repos.length > 0 ? repos : (asked.answer ?? []), isFree: repos.length === 0, isFixed: repos.length === 1 },
    ];
    return (
        <div className="fw-parts">
            {shown.map(({ part, label, offers, isFree, isFixed }) => (
                <FormGroup key={part} label={label} fieldId={`${id}-${part}`} isRequired={isRequired}>
                    <OneOf
                        id={`${id}-${part}`} offers={offersOf(offers)} isFree={isFree} isRequired={isRequired} isDisabled={isDisabled || isFixed} isInvalid={isInvalid && parts[part] === ""}
                        isLoading={part === "repo" && asked.isLoading} value={parts[part] || undefined} onChange={value => change(part, value)}
                    />
                </FormGroup>
            ))}
            <HelperText id={`${id}-repo-help`}><HelperTextItem>{t("repoHelp")}</HelperTextItem></HelperText>
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("repoFailed", { why: asked.error.message })}</HelperTextItem></HelperText>}
        </div>
    );
}

/** What somebody has written, as soon as he pauses. */
function useSettled(text: string): string {
    const [settled, setSettled] = useState(text);
    useEffect(() => {
        const timer = setTimeout(() => setSettled(text), PAUSE_MS);
        return () => clearTimeout(timer);
    }, [text]);
    return settled;
}

/** The branches of a repository of this Fairway; none of one that is not there. */
async function branchesOf(owner: string, repo: string, signal: AbortSignal): Promise<string[]> {
    if (owner === ownerOf()) {
        const { items } = await list(REPOSITORIES, {}, { signal });
        if (!items.some(it => it.metadata?.name === repo)) return [];
    }
    return (await gitea.branches(owner, repo, signal)).map(it => it.name);
}

/** A branch of the repository that the question `repoUrl` names, as in Backstage. */
export function RepoBranchPicker(props: FieldProps) {
    const answers = (props.registry.formContext as { answers?: Record<string, unknown> } | undefined)?.answers;
    const { host, owner, repo } = repoOf(answers?.repoUrl);
    const known = useSettled(owner !== "" && repo !== "" && isOwnHost(host, session().gitUrl) ? `${owner}/${repo}` : "");
    const asked = useAnswer(`repo-branches ${known}`, async signal => {
        const [of = "", name = ""] = known.split("/");
        return known === "" ? [] : branchesOf(of, name, signal);
    });
    return (
        <>
            <OneOf {...common(props)} isFree offers={offersOf(asked.answer ?? [])} isLoading={asked.isLoading} value={answerOf(props)} onChange={value => set(props, value)} />
            {repo === "" && <HelperText><HelperTextItem>{t("branchNoRepo")}</HelperTextItem></HelperText>}
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("branchesFailed", { repo: known, why: asked.error.message })}</HelperTextItem></HelperText>}
        </>
    );
}
