// What a page shows instead of content: loading, nothing, forbidden, an error with what to do.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core/dist/dynamic/components/EmptyState";
import { Spinner } from "@patternfly/react-core/dist/dynamic/components/Spinner";
import LockIcon from "@patternfly/react-icons/dist/esm/icons/lock-icon";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { ApiError } from "../api/errors";
import { loginPath } from "../api/session";
import { t as shell } from "../text/shell";

interface Whole {
    /** In place of a whole page: it has the heading that the page would have. */
    isPage?: boolean;
}

export function Loading({ text = shell("loading"), isPage }: { text?: string } & Whole) {
    return (
        <EmptyState titleText={text} headingLevel={isPage ? "h1" : "h2"} icon={Spinner} variant="sm" aria-busy="true" />
    );
}

export function Empty({ title = shell("emptyTitle"), children, actions, isPage }: { title?: string; children?: ReactNode; actions?: ReactNode } & Whole) {
    return (
        <EmptyState titleText={title} headingLevel={isPage ? "h1" : "h2"} variant="sm">
            {children && <EmptyStateBody>{children}</EmptyStateBody>}
            {actions && (
                <EmptyStateFooter>
                    <EmptyStateActions>{actions}</EmptyStateActions>
                </EmptyStateFooter>
            )}
        </EmptyState>
    );
}

export function NoMatch({ onClear }: { onClear?: () => void }) {
    const action = onClear && <Button variant="link" onClick={onClear}>{shell("clearFilters")}</Button>;
    return <Empty title={shell("noMatchTitle")} actions={action}>{shell("noMatchBody")}</Empty>;
}

/** An error with what to do about it. */
export function Failed({ error, again, isPage }: { error: ApiError; again?: () => void } & Whole) {
    const isForbidden = error.status === 403;
    return (
        <EmptyState
            titleText={isForbidden ? shell("forbiddenTitle") : shell("errorTitle")}
            headingLevel={isPage ? "h1" : "h2"}
            variant="sm"
            {...(isForbidden ? { icon: LockIcon } : { status: "danger" as const })}
        >
            <EmptyStateBody>
                <p>{error.advice}</p>
                <p className="fw-detail">{error.message}</p>
            </EmptyStateBody>
            <EmptyStateFooter>
                <EmptyStateActions>
                    {error.status === 401 && <Button onClick={() => location.assign(loginPath())}>{shell("signIn")}</Button>}
                    {again && error.status !== 401 && <Button variant="secondary" onClick={again}>{shell("tryAgain")}</Button>}
                </EmptyStateActions>
            </EmptyStateFooter>
        </EmptyState>
    );
}

export function NotFound({ children }: { children?: ReactNode }) {
    return (
        <Empty isPage title={shell("notFoundTitle")} actions={<Link to="/home">{shell("goHome")}</Link>}>
            {children ?? shell("notFoundBody")}
        </Empty>
    );
}
