// Judges answers by interpreting the schema. The usual validator compiles schemas into functions, which the Content-Security-Policy of the
// portal refuses (no `unsafe-eval`), and rightly: a schema is a stranger's text.

import { type OutputUnit, Validator } from "@cfworker/json-schema";
import {
    createErrorHandler, type CustomValidator, type ErrorTransformer, getDefaultFormState, type RJSFSchema, type RJSFValidationError, toErrorSchema,
    type UiSchema, unwrapErrorHandler, type ValidationData, validationDataMerge, type ValidatorType,
} from "@rjsf/utils";
import { t } from "../text/form";

/** Keywords that only say that something below is wrong. */
const WRAPPERS = new Set(["properties", "items", "$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependencies", "additionalProperties", "not", "prefixItems", "dependentSchemas"]);

function wordsOf(unit: OutputUnit): string {
    switch (unit.keyword) {
        case "required": return t("required");
        case "pattern": return t("pattern");
        case "format": return t("format", { format: /"([^"]+)"/.exec(unit.error)?.[1] ?? "" });
        case "enum": case "const": return t("enum");
        case "minLength": return t("minLength");
        case "maxLength": return t("maxLength");
        case "minimum": case "maximum": case "exclusiveMinimum": case "exclusiveMaximum": case "multipleOf": return t("range");
        case "minItems": case "maxItems": case "uniqueItems": return t("items");
        case "type": return t("type");
        default: return unit.error;
    }
}

/** `#/a/0/b` as rjsf writes it: `.a.0.b`. A missing property is told at the property. */
export function placeOf(unit: { instanceLocation: string; keyword: string; error: string }): string {
    const parts = unit.instanceLocation.replace(/^#\/?/, "").split("/").filter(Boolean).map(part => decodeURIComponent(part).replace(/~1/g, "/").replace(/~0/g, "~"));
    if (unit.keyword === "required") {
        const missing = /property "([^"]+)"/.exec(unit.error)?.[1];
        if (missing) parts.push(missing);
    }
    return parts.map(part => `.${part}`).join("");
}

export function errorsOf(schema: RJSFSchema, answers: unknown): RJSFValidationError[] {
    // What JSON cannot say (undefined) is not there.
    const plain: unknown = JSON.parse(JSON.stringify(answers ?? {}));
    const { errors } = new Validator(schema as object, "7", false).validate(plain);
    const seen = new Set<string>();
    const found: RJSFValidationError[] = [];
    for (const unit of errors) {
        if (WRAPPERS.has(unit.keyword)) continue;
        const property = placeOf(unit);
        if (seen.has(property)) continue;
        seen.add(property);
        const message = wordsOf(unit);
        found.push({ name: unit.keyword, property, message, params: {}, stack: `${property} ${message}`, schemaPath: unit.keywordLocation });
    }
    return found;
}

class Interpreter implements ValidatorType {
    validateFormData(answers: unknown, schema: RJSFSchema, custom?: CustomValidator, transform?: ErrorTransformer, uiSchema?: UiSchema): ValidationData<unknown> {
        let errors = errorsOf(schema, answers);
        if (transform) errors = transform(errors, uiSchema);
        const data: ValidationData<unknown> = { errors, errorSchema: toErrorSchema(errors) };
        if (!custom) return data;
        const complete = getDefaultFormState(this, schema, answers, schema, true);
        const handler = custom(complete, createErrorHandler(complete), uiSchema, data.errorSchema);
        return validationDataMerge(data, unwrapErrorHandler(handler));
    }

    isValid(schema: RJSFSchema, answers: unknown, root: RJSFSchema): boolean {
        try {
            const whole = { ...(root.definitions ? { definitions: root.definitions } : {}), ...schema };
            const plain: unknown = answers === undefined ? undefined : JSON.parse(JSON.stringify(answers));
            return new Validator(whole as object, "7", true).validate(plain ?? {}).valid;
        } catch {
            return false;
        }
    }

    rawValidation<Result>(schema: RJSFSchema, answers?: unknown): { errors?: Result[]; validationError?: Error } {
        try {
            return { errors: errorsOf(schema, answers) as Result[] };
        } catch (thrown) {
            return { validationError: thrown as Error };
        }
    }
}

export const validator = new Interpreter();
