import { Label } from "@patternfly/react-core/dist/dynamic/components/Label";
import BanIcon from "@patternfly/react-icons/dist/esm/icons/ban-icon";
import CheckCircleIcon from "@patternfly/react-icons/dist/esm/icons/check-circle-icon";
import ExclamationCircleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-circle-icon";
import ExclamationTriangleIcon from "@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon";
import InProgressIcon from "@patternfly/react-icons/dist/esm/icons/in-progress-icon";
import OffIcon from "@patternfly/react-icons/dist/esm/icons/off-icon";
import PauseCircleIcon from "@patternfly/react-icons/dist/esm/icons/pause-circle-icon";
import PendingIcon from "@patternfly/react-icons/dist/esm/icons/pending-icon";
import QuestionCircleIcon from "@patternfly/react-icons/dist/esm/icons/question-circle-icon";
import type { ReactElement } from "react";
import { type Sign, signOf, type Tone, toneOf } from "./status";

const ICONS: Record<Sign, ReactElement> = {
    good: <CheckCircleIcon />, bad: <ExclamationCircleIcon />, warning: <ExclamationTriangleIcon />, busy: <InProgressIcon />,
    off: <OffIcon />, paused: <PauseCircleIcon />, pending: <PendingIcon />, ended: <BanIcon />, unknown: <QuestionCircleIcon />,
};

interface Props {
    word: string | null | undefined;
    tone?: Tone;
    title?: string | null;
    /** A property and no state: it has a colour, and nothing that says whether it is well. */
    isPlain?: boolean;
}

/** A state, in the original's word and colour. The icon says it to those who do not see the colour. */
export function StatusLabel({ word, tone, title, isPlain = false }: Props) {
    if (!word) return null;
    const shown = tone ?? toneOf(word);
    const sign = isPlain ? undefined : signOf(word, shown);
    return (
        <Label color={shown} icon={sign && ICONS[sign]} title={title ?? undefined} isCompact>
            {word}
        </Label>
    );
}
