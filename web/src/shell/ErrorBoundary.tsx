// A page that throws must not take the shell with it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core/dist/dynamic/components/EmptyState";
import { Component, type ReactNode } from "react";
import { t } from "../text/shell";

export class ErrorBoundary extends Component<{ children: ReactNode }, { error?: Error }> {
    override state: { error?: Error } = {};

    static getDerivedStateFromError(error: Error): { error: Error } {
        return { error };
    }

    override render(): ReactNode {
        const { error } = this.state;
        if (!error) return this.props.children;
        return (
            <EmptyState titleText={t("brokenTitle")} headingLevel="h1" status="danger">
                <EmptyStateBody>
                    <p>{t("brokenBody")}</p>
                    <pre className="fw-detail">{String(error.message).slice(0, 2000)}</pre>
                </EmptyStateBody>
                <EmptyStateFooter>
                    <EmptyStateActions>
                        <Button onClick={() => location.reload()}>{t("reload")}</Button>
                    </EmptyStateActions>
                </EmptyStateFooter>
            </EmptyState>
        );
    }
}
