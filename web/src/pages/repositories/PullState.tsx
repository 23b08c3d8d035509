// How a pull request stands, in a word of the reader's language and Gitea's colour.

import type { ReactNode } from "react";
import type { Pull } from "../../api/rest/gitea";
import { t } from "../../text/repositories";
import { StatusLabel } from "../../widgets";

const TONES = { merged: "purple", open: "blue", closed: "grey" } as const;

export function PullState({ of }: { of: Pull }): ReactNode {
    const state = of.merged ? "merged" : of.state === "open" ? "open" : "closed";
    return <StatusLabel isPlain={state === "open"} word={t(state)} tone={TONES[state]} />;
}
