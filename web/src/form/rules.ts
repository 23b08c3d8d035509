// What Backstage's fields ask of an answer beside the schema. Rules that the server has as well are its own; these are told while somebody
// still looks at the question.

import type { FormValidation, UiSchema } from "@rjsf/utils";
import { t } from "../text/form";
import { repoOf } from "./offers";

const NAME = /^[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*$/;
const TAG = /^[a-z0-9+#]+(?:-[a-z0-9+#]+)*$/;
const LONGEST = 63;

/** What is wrong with an answer to a field of this name. */
export function complaint(field: unknown, answer: unknown): string | undefined {
    if (answer === undefined || answer === "" || (Array.isArray(answer) && answer.length === 0)) return undefined;
    switch (field) {
        case "EntityNamePicker":
            return typeof answer === "string" && answer.length <= LONGEST && NAME.test(answer) ? undefined : t("entityName");
        case "EntityTagsPicker": {
            const wrong = (Array.isArray(answer) ? answer : [answer]).find(tag => typeof tag !== "string" || tag.length > LONGEST || !TAG.test(tag));
            return wrong === undefined ? undefined : t("entityTag", { tag: String(wrong) });
        }
        case "RepoUrlPicker": {
            const { host, owner, repo } = repoOf(answer);
            return host && owner && repo ? undefined : t("repoParts");
        }
        default:
            return undefined;
    }
}

/** The same for a page, as rjsf asks it. */
export function judge(answers: Record<string, unknown> | undefined, errors: FormValidation, uiSchema: UiSchema | undefined): FormValidation {
    for (const [name, ui] of Object.entries(uiSchema ?? {})) {
        const options = ui as { "ui:field"?: unknown; "ui:options"?: { field?: unknown } } | undefined;
        const found = complaint(options?.["ui:field"] ?? options?.["ui:options"]?.field, answers?.[name]);
        if (found !== undefined) (errors as Record<string, FormValidation | undefined>)[name]?.addError(found);
    }
    return errors;
}
