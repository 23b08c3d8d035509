// Help texts of templates: what is between backticks is code, as Backstage's users write it.

import type { ReactNode } from "react";

export function withCode(text: string): ReactNode {
    const parts = text.split(/`([^`]+)`/);
    return parts.length === 1 ? text : parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}
