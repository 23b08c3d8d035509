// A text field with a menu of offers, as PatternFly draws it: one answer of them, or several. The keyboard stays in the field; the marked
// offer is told to screen readers by `aria-activedescendant`.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { Label, LabelGroup } from "@patternfly/react-core/dist/dynamic/components/Label";
import { MenuToggle } from "@patternfly/react-core/dist/dynamic/components/MenuToggle";
import { Select, SelectList, SelectOption } from "@patternfly/react-core/dist/dynamic/components/Select";
import { TextInputGroup, TextInputGroupMain, TextInputGroupUtilities } from "@patternfly/react-core/dist/dynamic/components/TextInputGroup";
import TimesIcon from "@patternfly/react-icons/dist/esm/icons/times-icon";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { t } from "../text/form";
import { type Box, matching, type Offer, offerOf, press } from "./offers";

interface Common {
    id: string;
    offers: readonly Offer[];
    /** Whether an answer may be another than the offers. */
    isFree: boolean;
    isLoading?: boolean;
    isRequired?: boolean;
    isDisabled?: boolean;
    isInvalid?: boolean;
    /** The name of the field, where no label has its id. */
    label?: string;
    placeholder?: string;
}

interface FieldProps extends Common {
    text: string;
    /** What the offers are narrowed to; all are offered of an answer that was only opened again. */
    filter: string;
    isChosen: (offer: Offer) => boolean;
    onType: (text: string) => void;
    onChoose: (offer: Offer) => void;
    /** A key that the menu had no use for. Answers whether it was taken. */
    onKey?: (key: string) => boolean;
    onLeave: () => void;
    onClear?: () => void;
    isMulti?: boolean;
    children?: ReactNode;
}

const CLOSED: Box = { isOpen: false, marked: -1 };

function Field(props: FieldProps) {
    const { id, isFree, isLoading, isDisabled, isInvalid } = props;
    const [box, setBox] = useState<Box>(CLOSED);
    const input = useRef<HTMLInputElement>(null);
    const { offers, more } = matching(props.offers, props.filter);
    const marked = box.marked < offers.length ? box.marked : -1;
    useEffect(() => {
        if (box.isOpen && marked >= 0) document.getElementById(`${id}-offer-${marked}`)?.scrollIntoView({ block: "nearest" });
    }, [id, box.isOpen, marked]);
    const choose = (offer: Offer): void => {
        props.onChoose(offer);
        setBox(CLOSED);
        input.current?.focus();
    };
    const onKeyDown = (event: KeyboardEvent): void => {
        const { isOpen, marked: next, chosen, isTaken } = press({ isOpen: box.isOpen, marked }, event.key, offers.length);
        if (isTaken) event.preventDefault();
        if (chosen !== undefined && offers[chosen]) return choose(offers[chosen]);
        if (!isTaken && props.onKey?.(event.key)) event.preventDefault();
        setBox({ isOpen, marked: next });
    };
    const toggle = (): void => {
        setBox(box.isOpen ? CLOSED : { isOpen: true, marked: -1 });
        input.current?.focus();
    };
    const word = isLoading ? t("offersLoading") : t(isFree ? "offersNoneFree" : "offersNone");
    return (
        <Select
            variant="typeahead"
            isOpen={box.isOpen}
            onOpenChange={isOpen => setBox({ isOpen, marked: -1 })}
            // Tab goes on to the next field.
            onOpenChangeKeys={["Escape"]}
            onSelect={(_, value) => {
                const offer = offers.find(one => one.value === value);
                if (offer) choose(offer);
            }}
            isScrollable
            toggle={ref => (
                <MenuToggle
                    innerRef={ref} variant="typeahead" isFullWidth isExpanded={box.isOpen} isDisabled={isDisabled} onClick={toggle}
                    status={isInvalid ? "danger" : undefined} aria-label={t("offersOpen")}
                >
                    <TextInputGroup isPlain isDisabled={isDisabled}>
                        <TextInputGroupMain
                            inputId={id}
                            innerRef={input}
                            value={props.text}
                            onClick={() => setBox({ isOpen: true, marked: -1 })}
                            onChange={(_, text) => {
                                props.onType(text);
                                setBox({ isOpen: true, marked: isFree || text === "" ? -1 : 0 });
                            }}
                            onBlur={props.onLeave}
                            placeholder={props.placeholder}
                            role="combobox"
                            isExpanded={box.isOpen}
                            aria-controls={`${id}-offers`}
                            aria-activedescendant={box.isOpen && marked >= 0 ? `${id}-offer-${marked}` : undefined}
                            inputProps={{
                                // PatternFly's own name of it would stand in the place of the question.
                                "aria-label": props.label,
                                onKeyDown, autoComplete: "off", spellCheck: false, "aria-autocomplete": "list", "aria-describedby": `${id}-help`,
                                "aria-required": props.isRequired || undefined, "aria-invalid": isInvalid || undefined,
                            }}
                        >
                            {props.children}
                        </TextInputGroupMain>
                        {props.onClear && !isDisabled && (
                            <TextInputGroupUtilities>
                                <Button
                                    variant="plain" aria-label={t("offersClear")} icon={<TimesIcon />}
                                    onClick={() => {
                                        props.onClear?.();
                                        input.current?.focus();
                                    }}
                                />
                            </TextInputGroupUtilities>
                        )}
                    </TextInputGroup>
                </MenuToggle>
            )}
        >
            <SelectList id={`${id}-offers`} aria-label={t("offers")} isAriaMultiselectable={props.isMulti}>
                {offers.map((offer, at) => (
                    <SelectOption
                        key={offer.value} id={`${id}-offer-${at}`} value={offer.value} isFocused={at === marked} isSelected={props.isChosen(offer)}
                        // The field would be left, and what was typed taken, before the click arrives.
                        onMouseDown={event => event.preventDefault()}
                    >
                        {offer.label}
                    </SelectOption>
                ))}
                {offers.length === 0 && <SelectOption key="none" isAriaDisabled value={undefined}>{word}</SelectOption>}
                {more > 0 && <SelectOption key="more" isAriaDisabled value={undefined}>{t("offersMore", { n: more })}</SelectOption>}
            </SelectList>
        </Select>
    );
}

interface OneProps extends Common {
    value: string | undefined;
    onChange: (value: string | undefined) => void;
    /** An answer that was typed, as it is kept. */
    kept?: (text: string) => string;
    /** An answer as it is shown, if it is none of the offers. */
    shown?: (value: string) => string;
}

const same = (text: string): string => text;

/** One answer. What is typed is one, where that is allowed; else only what is chosen. */
export function OneOf({ value, onChange, kept = same, shown = same, ...field }: OneProps) {
    const [typed, setTyped] = useState<string>();
    const label = value === undefined ? "" : (field.offers.find(one => one.value === value)?.label ?? shown(value));
    const type = (text: string): void => {
        setTyped(text);
        const offer = offerOf(field.offers, text);
        if (text.trim() === "") onChange(undefined);
        else if (offer) onChange(offer.value);
        else if (field.isFree) onChange(kept(text));
    };
    return (
        <Field
            {...field}
            text={typed ?? label}
            filter={typed ?? ""}
            isChosen={offer => offer.value === value}
            onType={type}
            onChoose={offer => {
                setTyped(undefined);
                onChange(offer.value);
            }}
            onLeave={() => setTyped(undefined)}
            onClear={value === undefined && !typed ? undefined : () => type("")}
        />
    );
}

interface SomeProps extends Common {
    values: readonly string[];
    onChange: (values: string[]) => void;
    kept?: (text: string) => string;
    shown?: (value: string) => string;
    /** Keys that end an answer, beside Enter. */
    separators?: readonly string[];
}

/** Several answers, each a label that can be taken away. */
export function SomeOf({ values, onChange, kept = same, shown = same, separators = [], ...field }: SomeProps) {
    const [typed, setTyped] = useState("");
    const labelOf = (value: string): string => field.offers.find(one => one.value === value)?.label ?? shown(value);
    const toggle = (value: string): void => {
        setTyped("");
        onChange(values.includes(value) ? values.filter(one => one !== value) : [...values, value]);
    };
    /** Takes what was typed. Answers whether there was something. */
    const take = (): boolean => {
        if (typed.trim() === "") return false;
        const offer = offerOf(field.offers, typed);
        const value = offer?.value ?? (field.isFree ? kept(typed) : undefined);
        if (value !== undefined && !values.includes(value)) onChange([...values, value]);
        setTyped("");
        return true;
    };
    const onKey = (key: string): boolean => {
        if (key === "Enter" || separators.includes(key)) return take();
        if (key === "Backspace" && typed === "" && values.length > 0) {
            onChange(values.slice(0, -1));
            return true;
        }
        return false;
    };
    return (
        <Field
            {...field}
            isMulti
            text={typed}
            filter={typed}
            isChosen={offer => values.includes(offer.value)}
            onType={setTyped}
            onChoose={offer => toggle(offer.value)}
            onKey={onKey}
            onLeave={() => void take()}
            onClear={values.length === 0 ? undefined : () => onChange([])}
        >
            {values.length > 0 && (
                <LabelGroup aria-label={t("chosen")} numLabels={20}>
                    {values.map(value => (
                        <Label key={value} variant="outline" isDisabled={field.isDisabled} closeBtnAriaLabel={t("takeAway", { what: labelOf(value) })} onClose={() => toggle(value)}>
                            {labelOf(value)}
                        </Label>
                    ))}
                </LabelGroup>
            )}
        </Field>
    );
}
