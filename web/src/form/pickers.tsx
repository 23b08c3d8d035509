// Backstage's field extensions whose options are in the catalog.

import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/dynamic/components/HelperText";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import type { FieldProps } from "@rjsf/utils";
import { useEffect, useMemo } from "react";
import { type Asked, useAnswer } from "../api/hooks";
import { DATA_SOURCES } from "../api/kinds";
import { list } from "../api/kubernetes";
import { session } from "../api/session";
import { entityRefs, facetOf, type Found, type Wanted } from "../catalog/client";
import { t } from "../text/create";
import { OneOf, SomeOf } from "./Combobox";
import { type Defaults, type Offer, refOfText, refText } from "./offers";
import { answerOf, common, isFree, optionsOf, set, textsOf } from "./options";
import { ownerInstead, ownerText } from "./owner";
import { RepoBranchPicker, RepoUrlPicker } from "./repository";

/** Says that there is more than was read, or that nothing could be. */
function Notes({ asked, failed = "pickerFailed" }: { asked: Asked<Found<string>>; failed?: "pickerFailed" | "imagesFailed" }) {
    const { answer, error } = asked;
    return (
        <>
            {answer && answer.total > answer.items.length && <HelperText><HelperTextItem>{t("pickerCut", { n: answer.items.length, all: answer.total })}</HelperTextItem></HelperText>}
            {error && <HelperText><HelperTextItem variant="warning">{t(failed, { why: error.message })}</HelperTextItem></HelperText>}
        </>
    );
}

function useRefs(wanted: Wanted): Asked<Found<string>> {
    return useAnswer(`refs ${JSON.stringify(wanted)}`, signal => entityRefs(wanted, signal));
}

interface Way {
    /** A reference as the answer that is kept. */
    value: (ref: string) => string;
    label: (ref: string) => string;
    /** An answer that was typed. */
    kept: (text: string) => string;
}

function wayOf(props: FieldProps, kind?: string): Way {
    const { defaultKind, defaultNamespace } = optionsOf(props);
    const defaults: Defaults = {
        ...(typeof defaultKind === "string" ? { kind: defaultKind } : kind ? { kind } : {}),
        ...(typeof defaultNamespace === "string" || defaultNamespace === false ? { namespace: defaultNamespace } : {}),
    };
    return { value: ref => ref, label: ref => (defaults.kind === undefined ? ref : refText(ref, defaults)), kept: text => refOfText(text, defaults) };
}

/** One entity of the catalog; anything may be typed, unless the template forbids it. */
function Entity({ props, wanted, way, instead }: { props: FieldProps; wanted: Wanted; way: Way; instead?: (known: string[]) => string | undefined }) {
    const asked = useRefs(wanted);
    const { answer } = asked;
    const offers = useMemo(() => (answer?.items ?? []).map((ref): Offer => ({ value: way.value(ref), label: way.label(ref) })),
        // The ways of writing are those of the template, which stays.
        // eslint-disable-next-line react-hooks/exhaustive-deps
        [answer]);
    useEffect(() => {
        // Of what was cut off nobody knows what is in it.
        const better = answer && answer.items.length === answer.total ? instead?.(answer.items) : undefined;
        if (better !== undefined) set(props, better);
        // Once, when it is known what there is: what is written afterwards is the person's.
        // eslint-disable-next-line react-hooks/exhaustive-deps
    }, [answer]);
    const value = answerOf(props);
    // A default or an older answer that is not offered: nobody could choose it.
    const isStranger = !isFree(props) && value !== undefined && answer !== undefined && answer.items.length === answer.total && !offers.some(one => one.value === value);
    return (
        <>
            <OneOf {...common(props)} isInvalid={common(props).isInvalid || isStranger} offers={offers} isLoading={asked.isLoading} value={value} onChange={to => set(props, to)} kept={way.kept} shown={way.label} />
            {isStranger && <HelperText><HelperTextItem variant="error">{t("pickerStranger", { what: way.label(value) })}</HelperTextItem></HelperText>}
            <Notes asked={asked} />
        </>
    );
}

function kindsOf(props: FieldProps, fallback: string[]): string[] {
    const kinds = textsOf(props, "allowedKinds");
    return kinds.length > 0 ? kinds : fallback;
}

/** `catalogFilter` of a picker: one or several records of field and value. */
function filtersOf(props: FieldProps): NonNullable<Wanted["filters"]> {
    const filter = optionsOf(props).catalogFilter;
    const all: unknown[] = Array.isArray(filter) ? filter : filter ? [filter] : [];
    return all.filter((one): one is NonNullable<Wanted["filters"]>[number] => typeof one === "object" && one !== null);
}

/** Owners are written as entities' files name them, and whole where nothing else than an entity is an answer. */
function OwnerPicker(props: FieldProps) {
    const value = isFree(props) ? ownerText : (ref: string) => ref;
    const way: Way = { value, label: ownerText, kept: text => text };
    return <Entity props={props} wanted={{ kinds: kindsOf(props, ["Group", "User"]), filters: filtersOf(props) }} way={way} instead={known => ownerInstead(props.formData, props.schema.default, known, myRefs())} />;
}

const EntityPicker = (props: FieldProps) => <Entity props={props} wanted={{ kinds: kindsOf(props, []), filters: filtersOf(props) }} way={wayOf(props)} />;
const OwnedEntityPicker = (props: FieldProps) => <Entity props={props} wanted={{ kinds: kindsOf(props, []), filters: filtersOf(props), ownedBy: myRefs() }} way={wayOf(props)} />;

function MyGroupsPicker(props: FieldProps) {
    const filters = filtersOf(props);
    const mine = (filters.length > 0 ? filters : [{}]).map(one => ({ ...one, "relations.hasMember": myRefs() }));
    return <Entity props={props} wanted={{ kinds: ["Group"], filters: mine }} way={wayOf(props, "Group")} />;
}

function myRefs(): string[] {
    const { user } = session();
    const name = user.name.split(/[:/]/).pop() ?? user.name;
    return [`user:default/${name}`, ...(user.groups ?? []).map(group => `group:default/${group.split(/[:/]/).pop() ?? group}`)];
}

/** A name that the catalog would accept; the schema may ask for more. */
function EntityNamePicker(props: FieldProps) {
    const { id, isRequired, isDisabled, isInvalid } = common(props);
    return <TextInput id={id} value={answerOf(props) ?? ""} onChange={(_, text) => set(props, text || undefined)} isRequired={isRequired} isDisabled={isDisabled} aria-describedby={`${id}-help`} autoComplete="off" validated={isInvalid ? "error" : "default"} />;
}

function MultiEntityPicker(props: FieldProps) {
    const asked = useRefs({ kinds: kindsOf(props, []), filters: filtersOf(props) });
    const way = wayOf(props);
    const offers = (asked.answer?.items ?? []).map((ref): Offer => ({ value: ref, label: way.label(ref) }));
    return (
        <>
            <SomeOf {...common(props)} offers={offers} isLoading={asked.isLoading} values={(props.formData as string[] | undefined) ?? []} onChange={values => set(props, values)} kept={way.kept} shown={way.label} />
            <Notes asked={asked} />
            {asked.answer?.items.length === 0 && <HelperText><HelperTextItem>{t("pickerNone")}</HelperTextItem></HelperText>}
        </>
    );
}

/** Tags; those that the catalog has are offered. */
function EntityTagsPicker(props: FieldProps) {
    const kinds = textsOf(props, "kinds");
    const asked = useAnswer(`tags ${JSON.stringify(kinds)}`, signal => facetOf("metadata.tags", kinds, signal));
    const offers = (asked.answer?.items ?? []).map((tag): Offer => ({ value: tag, label: tag }));
    return (
        <>
            <SomeOf
                {...common(props)} isFree offers={offers} isLoading={asked.isLoading} values={(props.formData as string[] | undefined) ?? []} onChange={values => set(props, values)}
                kept={text => text.trim().toLowerCase()} separators={[",", " "]}
            />
            <HelperText><HelperTextItem>{t("tagsHelp")}</HelperTextItem></HelperText>
            <Notes asked={asked} />
        </>
    );
}

function Secret(props: FieldProps) {
    const { id, isRequired, isDisabled, isInvalid } = common(props);
    return <TextInput id={id} type="password" value={answerOf(props) ?? ""} onChange={(_, text) => set(props, text || undefined)} isRequired={isRequired} isDisabled={isDisabled} autoComplete="new-password" aria-describedby={`${id}-help`} validated={isInvalid ? "error" : "default"} />;
}

/** The name of an image: a DataSource of a namespace, or one that will be there. */
function DataSourcePicker(props: FieldProps) {
    const namespace = String(optionsOf(props).namespace ?? "fairway-images");
    const asked = useAnswer(`datasources ${namespace}`, signal => list(DATA_SOURCES, { namespace }, { signal }));
    const names = (asked.answer?.items ?? []).map(one => one.metadata?.name ?? "").filter(Boolean).sort();
    return (
        <>
            <OneOf {...common(props)} offers={names.map(name => ({ value: name, label: name }))} isLoading={asked.isLoading} value={answerOf(props)} onChange={to => set(props, to)} />
            {asked.answer && names.length === 0 && <HelperText><HelperTextItem>{t("imagesNone")}</HelperTextItem></HelperText>}
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("imagesFailed", { why: asked.error.message })}</HelperTextItem></HelperText>}
        </>
    );
}

export const fields = {
    DataSourcePicker, OwnerPicker, EntityPicker, OwnedEntityPicker, MyGroupsPicker, EntityNamePicker, MultiEntityPicker, EntityTagsPicker, RepoUrlPicker, RepoBranchPicker, Secret,
};
