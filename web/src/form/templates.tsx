// How questions look: PatternFly's form instead of rjsf's own.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { FormGroup, FormHelperText } from "@patternfly/react-core/dist/dynamic/components/Form";
import { FormSelect, FormSelectOption } from "@patternfly/react-core/dist/dynamic/components/FormSelect";
import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/dynamic/components/HelperText";
import { Radio } from "@patternfly/react-core/dist/dynamic/components/Radio";
import { TextArea } from "@patternfly/react-core/dist/dynamic/components/TextArea";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import type { ArrayFieldTemplateProps, BaseInputTemplateProps, FieldTemplateProps, IconButtonProps, ObjectFieldTemplateProps, TemplatesType, WidgetProps } from "@rjsf/utils";
import { t } from "../text/create";
import { withCode } from "./words";

function FieldTemplate(props: FieldTemplateProps) {
    const { id, label, required, rawErrors, rawHelp, rawDescription, children, hidden, schema, displayLabel, uiSchema } = props;
    if (hidden) return <div hidden>{children}</div>;
    if (schema.type === "object") return <>{children}</>;
    // rjsf thinks that a field of somebody else's labels itself; Backstage's do not.
    const isLabelled = (displayLabel !== false || uiSchema?.["ui:field"] !== undefined) && schema.type !== "boolean";
    // Of several controls the label is that of the group; each has its own.
    const role = uiSchema?.["ui:widget"] === "radio" ? "radiogroup" : isGroup(props) ? "group" : undefined;
    return (
        <FormGroup label={isLabelled ? label : undefined} fieldId={id} isRequired={required} className="fw-field" role={isLabelled ? role : undefined}>
            {children}
            <FormHelperText>
                <HelperText id={`${id}-help`} aria-live="polite">
                    {(rawErrors ?? []).map(error => <HelperTextItem key={error} variant="error">{error}</HelperTextItem>)}
                    {rawDescription && <HelperTextItem>{withCode(rawDescription)}</HelperTextItem>}
                    {rawHelp && <HelperTextItem>{typeof rawHelp === "string" ? withCode(rawHelp) : rawHelp}</HelperTextItem>}
                </HelperText>
            </FormHelperText>
        </FormGroup>
    );
}

function isGroup({ uiSchema, schema }: FieldTemplateProps): boolean {
    const items = schema.items;
    const field = uiSchema?.["ui:field"] ?? (uiSchema?.["ui:options"] as { field?: unknown } | undefined)?.field;
    const isChoices = schema.type === "array" && field === undefined && typeof items === "object" && !Array.isArray(items) && items.enum !== undefined;
    return field === "RepoUrlPicker" || isChoices;
}

function ObjectFieldTemplate({ title, description, properties, fieldPathId }: ObjectFieldTemplateProps) {
    const isRoot = fieldPathId.path.length === 0;
    const inner = properties.map(property => <div key={property.name}>{property.content}</div>);
    if (isRoot) return <>{inner}</>;
    return (
        <fieldset className="fw-fieldset">
            {title && <legend>{title}</legend>}
            {description && <p className="fw-muted">{typeof description === "string" ? withCode(description) : description}</p>}
            {inner}
        </fieldset>
    );
}

/** Items one below the other. The description stands below them, as with every question: rjsf's own template has it above as well. */
function ArrayFieldTemplate({ title, items, canAdd, onAddClick, disabled, readonly, fieldPathId }: ArrayFieldTemplateProps) {
    return (
        <fieldset className="fw-fieldset" id={fieldPathId.$id} aria-describedby={`${fieldPathId.$id}-help`}>
            {title && <legend>{title}</legend>}
            {items}
            {canAdd && <Button variant="link" isInline onClick={onAddClick} isDisabled={disabled || readonly}>{t("addItem")}</Button>}
        </fieldset>
    );
}

function BaseInput(props: BaseInputTemplateProps) {
    const { id, value, onChange, onBlur, type, schema, required, disabled, readonly, autofocus, placeholder, rawErrors, options } = props;
    const isNumber = schema.type === "number" || schema.type === "integer";
    const kind = type ?? (isNumber ? "number" : schema.format === "email" ? "email" : schema.format === "uri" ? "url" : "text");
    const change = (text: string): void => {
        if (text === "") return onChange(options.emptyValue ?? undefined);
        onChange(isNumber ? Number(text) : text);
    };
    return (
        <TextInput
            id={id}
            type={kind as "text"}
            value={value ?? ""}
            onChange={(_, text) => change(text)}
            onBlur={() => onBlur(id, value)}
            isRequired={required}
            isDisabled={disabled}
            readOnlyVariant={readonly ? "default" : undefined}
            autoFocus={autofocus}
            placeholder={placeholder}
            aria-describedby={`${id}-help`}
            validated={rawErrors?.length ? "error" : "default"}
            autoComplete="off"
        />
    );
}

function Textarea({ id, value, onChange, required, disabled, options }: WidgetProps) {
    return (
        <TextArea id={id} value={value ?? ""} onChange={(_, text) => onChange(text || undefined)} isRequired={required} isDisabled={disabled} rows={Number(options.rows ?? 4)} resizeOrientation="vertical" aria-describedby={`${id}-help`} />
    );
}

function Select({ id, value, onChange, options, required, disabled, multiple, schema }: WidgetProps) {
    const choices = options.enumOptions ?? [];
    if (multiple) {
        const chosen = new Set<unknown>(Array.isArray(value) ? value : []);
        const toggle = (one: unknown): void => {
            if (chosen.has(one)) chosen.delete(one);
            else chosen.add(one);
            onChange([...chosen]);
        };
        return (
            <div id={id}>
                {choices.map((choice, at) => (
                    <Checkbox key={at} id={`${id}-${at}`} label={choice.label} isChecked={chosen.has(choice.value)} onChange={() => toggle(choice.value)} isDisabled={disabled} />
                ))}
            </div>
        );
    }
    const at = choices.findIndex(choice => choice.value === value);
    return (
        <FormSelect id={id} value={at} onChange={(_, index) => onChange(choices[Number(index)]?.value)} isRequired={required} isDisabled={disabled} aria-describedby={`${id}-help`}>
            {(at === -1 || (!required && schema.default === undefined)) && <FormSelectOption value={-1} label={t("choose")} isPlaceholder />}
            {choices.map((choice, index) => <FormSelectOption key={index} value={index} label={choice.label} />)}
        </FormSelect>
    );
}

function Check({ id, value, onChange, label, disabled }: WidgetProps) {
    return <Checkbox id={id} label={label} isChecked={value === true} onChange={(_, is) => onChange(is)} isDisabled={disabled} aria-describedby={`${id}-help`} />;
}

function Radios({ id, value, onChange, options, disabled, schema }: WidgetProps) {
    return (
        <div role={schema.type === "boolean" ? "radiogroup" : undefined} id={id}>
            {(options.enumOptions ?? []).map((choice, at) => (
                <Radio key={at} id={`${id}-${at}`} name={id} label={choice.label} isChecked={choice.value === value} onChange={() => onChange(choice.value)} isDisabled={disabled} />
            ))}
        </div>
    );
}

function Password(props: WidgetProps) {
    return <BaseInput {...props} type="password" />;
}

const add = (props: IconButtonProps) => <Button variant="link" onClick={props.onClick} isDisabled={props.disabled}>{t("addItem")}</Button>;
const removeItem = (props: IconButtonProps) => <Button variant="link" isDanger onClick={props.onClick} isDisabled={props.disabled}>{t("removeItem")}</Button>;
const nothing = () => null;

export const templates = {
    FieldTemplate,
    ObjectFieldTemplate,
    ArrayFieldTemplate,
    BaseInputTemplate: BaseInput,
    ErrorListTemplate: nothing,
    ButtonTemplates: { AddButton: add, RemoveButton: removeItem, MoveUpButton: nothing, MoveDownButton: nothing, CopyButton: nothing, SubmitButton: nothing, ClearButton: nothing },
} as unknown as Partial<TemplatesType>;

export const widgets = {
    TextareaWidget: Textarea,
    SelectWidget: Select,
    CheckboxWidget: Check,
    CheckboxesWidget: (props: WidgetProps) => <Select {...props} multiple />,
    RadioWidget: Radios,
    PasswordWidget: Password,
};
