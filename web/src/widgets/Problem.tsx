// What went wrong, above what it went wrong with.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { type ApiError, Refusals } from "../api/errors";

export function Problem({ error, title }: { error: ApiError | undefined; title?: string }) {
    if (!error) return null;
    return (
        <Alert variant="danger" isInline title={title ? `${title}: ${error.message}` : error.message}>
            {error instanceof Refusals && <ul className="fw-long-list">{error.each.map(one => <li key={one} className="fw-wrap">{one}</li>)}</ul>}
            {error.advice}
        </Alert>
    );
}
