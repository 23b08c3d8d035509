// Answers as the review says them: in the words of the form, not in those of JSON.

import { choiceName } from "../../form/schema";
import { t } from "../../text/create";

export function answerText(schemas: unknown[], question: string, value: unknown): string {
    if (value === undefined || value === null || value === "") return t("noAnswer");
    if (Array.isArray(value)) return value.length === 0 ? t("noAnswer") : value.map(one => answerText(schemas, question, one)).join(", ");
    const name = choiceName(schemas, question, value);
    if (name !== undefined) return name;
    if (typeof value === "boolean") return t(value ? "yes" : "no");
    return typeof value === "object" ? JSON.stringify(value) : String(value);
}
