// What is shown when the portal cannot even begin.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core/dist/dynamic/components/EmptyState";
import { t } from "../text/shell";

export function StartFailed({ message, advice }: { message: string; advice: string }) {
    return (
        <main>
            <EmptyState titleText={t("errorTitle")} headingLevel="h1" status="danger">
                <EmptyStateBody>
                    <p>{advice}</p>
                    <p className="fw-detail">{message}</p>
                </EmptyStateBody>
                <EmptyStateFooter>
                    <EmptyStateActions>
                        <Button onClick={() => location.reload()}>{t("tryAgain")}</Button>
                    </EmptyStateActions>
                </EmptyStateFooter>
            </EmptyState>
        </main>
    );
}
