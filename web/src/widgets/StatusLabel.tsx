import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import CheckCircleIcon from "@patternfly/react-icons/dist/esm/icons/check-circle-icon";
import ExclamationCircleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import ExclamationTriangleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon";
import InProgressIcon from "@patternfly/react-icons/dist/esm/icons/in-progress-icon";
import QuestionCircleIcon from "@patternfly/react-icons/dist/esm/icons/question-circle-icon";
import type { ReactElement } from "react";
import { type Tone, toneOf } from "./status";

const ICONS: Partial<Record<Tone, ReactElement>> = {
    green: <CheckCircleIcon />,
    red: <ExclamationCircleIcon />,
    orange: <ExclamationTriangleIcon />,
    yellow: <ExclamationTriangleIcon />,
    blue: <InProgressIcon />,
    grey: <QuestionCircleIcon />,
};

/** A state, in the original's word and colour. The icon says it to those who do not see the colour. */
export function StatusLabel({ word, tone, title }: { word: string | null | undefined; tone?: Tone; title?: string | null }) {
    if (!word) return null;
    const shown = tone ?? toneOf(word);
    return (
        <Label color={shown} icon={ICONS[shown]} title={title ?? undefined} isCompact>
            {word}
        </Label>
    );
}
