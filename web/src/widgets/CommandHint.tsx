// How the same is done in a terminal: every page says it, so that nobody depends on the portal.

import { ExpandableSection } from "@patternfly/react-core/dist/dynamic/components/ExpandableSection";
import { workspace } from "../api/session";
import { t } from "../text/shell";
import { withWorkspace } from "./command";
import { CopyButton } from "./CopyButton";

export function CommandHint({ commands }: { commands: string[] }) {
    return (
        <ExpandableSection className="fw-command" toggleText={t("command")}>
            {withWorkspace(workspace(), commands).map(command => (
                <div key={command} className="fw-row-gap">
                    <code className="fw-wrap">{command}</code>
                    <CopyButton text={command} />
                </div>
            ))}
        </ExpandableSection>
    );
}
