// What fields of templates have in common: their options, in both ways of writing, and how an answer is given.

import type { FieldProps } from "@rjsf/utils";

/** `ui:options: {name: ...}`, and `ui:name: ...`, which says the same. */
export function optionsOf({ uiSchema }: Pick<FieldProps, "uiSchema">): Record<string, unknown> {
    const beside = Object.entries(uiSchema ?? {}).flatMap(([key, value]): [string, unknown][] => (key.startsWith("ui:") && key !== "ui:options" ? [[key.slice(3), value]] : []));
    return { ...Object.fromEntries(beside), ...((uiSchema?.["ui:options"] as Record<string, unknown> | undefined) ?? {}) };
}

/** Texts of an option; none are no rule. */
export function textsOf(props: Pick<FieldProps, "uiSchema">, name: string): string[] {
    const found = optionsOf(props)[name];
    if (typeof found === "string") return [found];
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
}

/** Whether anything may be typed. It may, unless the template says otherwise. */
export function isFree(props: Pick<FieldProps, "uiSchema">): boolean {
    return optionsOf(props).allowArbitraryValues !== false;
}

export function set(props: FieldProps, value: unknown): void {
    props.onChange(value as never, props.fieldPathId.path);
}

export function answerOf(props: FieldProps): string | undefined {
    return typeof props.formData === "string" && props.formData !== "" ? props.formData : undefined;
}

/** What every control of a question is told. */
export function common(props: FieldProps): { id: string; isRequired: boolean; isDisabled: boolean; isInvalid: boolean; isFree: boolean; placeholder?: string } {
    return {
        id: props.fieldPathId.$id,
        isRequired: props.required === true,
        isDisabled: props.disabled === true || props.readonly === true,
        isInvalid: (props.rawErrors ?? []).length > 0,
        isFree: isFree(props),
        ...(typeof optionsOf(props).placeholder === "string" ? { placeholder: String(optionsOf(props).placeholder) } : {}),
    };
}
