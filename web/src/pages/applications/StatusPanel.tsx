// Argo CD's panel above an Application: how it is, of which revision it is, whose that is, and what the last sync came to.

import type { ReactNode } from "react";
import { Link } from "react-router";
import { type Application, session, useAnswer } from "../../api";
import { t } from "../../text/applications";
import { Age, StatusLabel } from "../../widgets";
import { hostedRepository } from "../../widgets/address";
import { gitea } from "../repositories/gitea";
import { healthOf, syncOf } from "./model";

/** The three stand beside each other where there is room, as with Argo CD. */
const BESIDE = { gridTemplateColumns: "repeat(auto-fit, minmax(min(14rem, 100%), 1fr))" };

export function StatusPanel(props: { app: Application }): ReactNode {
    const { spec, status } = props.app;
    const address = spec.source?.repoURL ?? spec.sources?.[0]?.repoURL ?? "";
    const target = spec.source?.targetRevision ?? spec.sources?.[0]?.targetRevision ?? "HEAD";
    const operation = status?.operationState;
    const synced = operation?.syncResult?.revision;
    return (
        <section aria-label={t("statusPanel")} className="fw-grid" style={BESIDE}>
            <div>
                <div className="fw-muted">{t("appHealth")}</div>
                <StatusLabel word={healthOf(props.app)} />
                {status?.health?.message && <div className="fw-detail">{status.health.message}</div>}
            </div>
            <div>
                <div className="fw-muted">{t("syncStatus")}</div>
                <span className="fw-row-gap"><StatusLabel word={syncOf(props.app)} /> {t("ofTarget", { target })}</span>
                {status?.sync?.revision && <div><Commit address={address} revision={status.sync.revision} hasAuthor /></div>}
            </div>
            <div>
                <div className="fw-muted">{t("lastSync")}</div>
                {operation ? (
                    <>
                        <span className="fw-row-gap"><StatusLabel word={operation.phase} tone={operation.phase === "Running" ? "blue" : undefined} /> <Age isAgo of={operation.finishedAt ?? operation.startedAt} /></span>
                        {synced && <div><Commit address={address} revision={synced} /></div>}
                        {operation.message && <div className="fw-detail">{operation.message.slice(0, 300)}</div>}
                    </>
                ) : <span className="fw-muted">{t("noHistory")}</span>}
            </div>
        </section>
    );
}

/** What was synced: of a repository that is hosted here also what its commit says, and whose it is. */
export function Commit(props: { address: string; revision: string; hasAuthor?: boolean }): ReactNode {
    const { address, revision } = props;
    const place = hostedRepository(address, session().gitUrl);
    const [owner = "", name = ""] = place?.split("/").slice(2) ?? [];
    const isKnown = place !== undefined && /^[0-9a-f]{40,64}$/.test(revision);
    const found = useAnswer(`commit ${place} ${revision}`, signal => (isKnown ? gitea.commit(owner, name, revision, signal) : Promise.resolve(undefined)));
    const short = <code>{revision.slice(0, 10)}</code>;
    if (!isKnown) return short;
    const { message = "", author } = found.answer?.commit ?? {};
    return (
        <>
            <Link to={`${place}/commits/${revision}`}>{short}</Link> <span className="fw-wrap">{message.split("\n")[0]}</span>
            {props.hasAuthor && author?.name && <div className="fw-muted">{t("author", { who: author.name })}</div>}
        </>
    );
}
