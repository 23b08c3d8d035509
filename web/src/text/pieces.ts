// Texts of what several pages are made of.

import { plurals, texts } from "./t";

export const parts = texts("parts", { unread: "{what} could not be read: {why}" });

export const diff = texts("diff", { none: "No differences.", label: "Differences" });
export const countedLines = plurals("diff", { skipped: { one: "{n} line that is the same", other: "{n} lines that are the same" } });
