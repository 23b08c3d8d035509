// Backstage's field extensions: questions whose options are in the catalog.

import { Checkbox } from "@patternfly/react-core/dist/dynamic/components/Checkbox";
import { FormGroup, FormHelperText } from "@patternfly/react-core/dist/dynamic/components/Form";
import { HelperText, HelperTextItem } from "@patternfly/react-core/dist/dynamic/components/HelperText";
import { TextInput } from "@patternfly/react-core/dist/dynamic/components/TextInput";
import type { FieldProps } from "@rjsf/utils";
import { useEffect, useId } from "react";
import { useAnswer } from "../api/hooks";
import { DATA_SOURCES } from "../api/kinds";
import { list } from "../api/kubernetes";
import { session } from "../api/session";
import { shortRef } from "../catalog/entity";
import { entityRefs, type Found, type Wanted } from "../catalog/client";
import { t } from "../text/create";
import { ownerInstead, ownerText } from "./owner";

function options(props: FieldProps): Record<string, unknown> {
    return (props.uiSchema?.["ui:options"] ?? {}) as Record<string, unknown>;
}

function set(props: FieldProps, value: unknown): void {
    props.onChange(value as never, props.fieldPathId.path);
}

/** Label, help and errors around a control. Custom fields draw their own. */
function Question({ props, children }: { props: FieldProps; children: React.ReactNode }) {
    return (
        <>
            {children}
            {props.rawErrors?.length ? <span className="fw-visually-hidden">{props.rawErrors.join(" ")}</span> : null}
        </>
    );
}

/** Says that there is more than is offered. */
function Cut({ of }: { of: Found<string> | undefined }) {
    if (!of || of.total <= of.items.length) return null;
    return <HelperText><HelperTextItem>{t("pickerCut", { n: of.items.length, all: of.total })}</HelperTextItem></HelperText>;
}

/** A text with suggestions from the catalog; anything may be typed, unless the template forbids it. */
function Suggest({ props, wanted, show, instead }: { props: FieldProps; wanted: Wanted; show: (ref: string) => string; instead?: (known: string[]) => string | undefined }) {
    const id = props.fieldPathId.$id;
    const listId = useId();
    const asked = useAnswer(`refs ${JSON.stringify(wanted)}`, signal => entityRefs(wanted, signal));
    const found = asked.answer?.items ?? [];
    useEffect(() => {
        // Of what was cut off nobody knows what is in it.
        const better = asked.answer && asked.answer.items.length === asked.answer.total ? instead?.(asked.answer.items) : undefined;
        if (better !== undefined) set(props, better);
        // Once, when it is known what there is: what is written afterwards is the person's.
        // eslint-disable-next-line react-hooks/exhaustive-deps
    }, [asked.answer]);
    return (
        <Question props={props}>
            <TextInput
                id={id}
                value={(props.formData as string | undefined) ?? ""}
                onChange={(_, text) => set(props, text || undefined)}
                list={listId}
                isRequired={props.required}
                isDisabled={props.disabled}
                aria-describedby={`${id}-help`}
                validated={props.rawErrors?.length ? "error" : "default"}
                autoComplete="off"
            />
            <datalist id={listId}>
                {found.map(ref => <option key={ref} value={show(ref)} />)}
            </datalist>
            <Cut of={asked.answer} />
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("pickerFailed", { why: asked.error.message })}</HelperTextItem></HelperText>}
        </Question>
    );
}

function kindsOf(props: FieldProps, fallback: string[]): string[] {
    const { allowedKinds } = options(props);
    return Array.isArray(allowedKinds) ? allowedKinds.map(String) : fallback;
}

/** `catalogFilter` of a picker: one or several records of field and value. */
function filtersOf(props: FieldProps): Record<string, string | string[]>[] {
    const filter = options(props).catalogFilter;
    const all = Array.isArray(filter) ? filter : filter ? [filter] : [];
    return all.filter((one): one is Record<string, string | string[]> => typeof one === "object" && one !== null);
}

const whole = (ref: string): string => ref;
const OwnerPicker = (props: FieldProps) => (
    <Suggest props={props} wanted={{ kinds: kindsOf(props, ["Group", "User"]), filters: filtersOf(props) }} show={ownerText} instead={known => ownerInstead(props.formData, props.schema.default, known, myRefs())} />
);
const EntityPicker = (props: FieldProps) => <Suggest props={props} wanted={{ kinds: kindsOf(props, []), filters: filtersOf(props) }} show={whole} />;
const OwnedEntityPicker = (props: FieldProps) => <Suggest props={props} wanted={{ kinds: kindsOf(props, []), filters: filtersOf(props), ownedBy: myRefs() }} show={whole} />;
const MyGroupsPicker = (props: FieldProps) => <Suggest props={props} wanted={{ kinds: ["Group"], filters: [{ "relations.hasMember": myRefs() }] }} show={shortRef} />;

function myRefs(): string[] {
    const { user } = session();
    const name = user.name.split(/[:/]/).pop() ?? user.name;
    return [`user:default/${name}`, ...(user.groups ?? []).map(group => `group:default/${group.split(/[:/]/).pop() ?? group}`)];
}

/** A name that the catalog would accept; the schema may ask for more. */
function EntityNamePicker(props: FieldProps) {
    const id = props.fieldPathId.$id;
    return (
        <Question props={props}>
            <TextInput id={id} value={(props.formData as string | undefined) ?? ""} onChange={(_, text) => set(props, text || undefined)} isRequired={props.required} maxLength={63} aria-describedby={`${id}-help`} autoComplete="off" validated={props.rawErrors?.length ? "error" : "default"} />
        </Question>
    );
}

function MultiEntityPicker(props: FieldProps) {
    const wanted: Wanted = { kinds: kindsOf(props, []), filters: filtersOf(props) };
    const asked = useAnswer(`refs ${JSON.stringify(wanted)}`, signal => entityRefs(wanted, signal));
    const chosen = new Set<string>((props.formData as string[] | undefined) ?? []);
    const toggle = (ref: string): void => {
        if (chosen.has(ref)) chosen.delete(ref);
        else chosen.add(ref);
        set(props, [...chosen]);
    };
    const all = [...new Set([...(asked.answer?.items ?? []), ...chosen])];
    return (
        <div role="group" id={props.fieldPathId.$id} className="fw-choices">
            {all.map(ref => <Checkbox key={ref} id={`${props.fieldPathId.$id}-${ref}`} label={shortRef(ref)} isChecked={chosen.has(ref)} onChange={() => toggle(ref)} />)}
            <Cut of={asked.answer} />
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("pickerFailed", { why: asked.error.message })}</HelperTextItem></HelperText>}
            {all.length === 0 && !asked.isLoading && !asked.error && <span className="fw-muted">{t("pickerNone")}</span>}
        </div>
    );
}

/** Tags, separated by commas or spaces. */
function EntityTagsPicker(props: FieldProps) {
    const id = props.fieldPathId.$id;
    const value = ((props.formData as string[] | undefined) ?? []).join(", ");
    return <TextInput id={id} key={id} defaultValue={value} onBlur={event => set(props, event.target.value.split(/[,\s]+/).filter(Boolean))} aria-describedby={`${id}-help`} autoComplete="off" />;
}

/** Owner and name of a repository, as `fairway?owner=..&repo=..`. */
function RepoUrlPicker(props: FieldProps) {
    const text = (props.formData as string | undefined) ?? "";
    const { allowedHosts } = options(props);
    const hosts = Array.isArray(allowedHosts) ? allowedHosts.map(String) : ["fairway"];
    const [host = "", query = ""] = text.split("?");
    const search = new URLSearchParams(query);
    const id = props.fieldPathId.$id;
    const change = (key: "host" | "owner" | "repo", value: string): void => {
        if (key !== "host") search.set(key, value);
        const where = key === "host" ? value : host || hosts[0] || "fairway";
        set(props, `${where}?${search.toString()}`);
    };
    return (
        <div id={id}>
            {(["host", "owner", "repo"] as const).map(key => (
                <FormGroup key={key} label={t(key === "host" ? "repoHost" : key === "owner" ? "repoOwner" : "repoName")} fieldId={`${id}-${key}`} isRequired={props.required}>
                    <TextInput id={`${id}-${key}`} value={key === "host" ? host || (hosts[0] ?? "") : (search.get(key) ?? "")} onChange={(_, value) => change(key, value)} isDisabled={key === "host" && hosts.length === 1} />
                </FormGroup>
            ))}
            <FormHelperText><HelperText><HelperTextItem>{t("repoHelp")}</HelperTextItem></HelperText></FormHelperText>
        </div>
    );
}

function Secret(props: FieldProps) {
    const id = props.fieldPathId.$id;
    return <TextInput id={id} type="password" value={(props.formData as string | undefined) ?? ""} onChange={(_, text) => set(props, text || undefined)} isRequired={props.required} autoComplete="new-password" aria-describedby={`${id}-help`} />;
}

/** The name of an image: a DataSource of a namespace, or one that will be there. */
function DataSourcePicker(props: FieldProps) {
    const id = props.fieldPathId.$id;
    const listId = useId();
    const namespace = String(options(props).namespace ?? "fairway-images");
    const asked = useAnswer(`datasources ${namespace}`, signal => list(DATA_SOURCES, { namespace }, { signal }));
    const names = (asked.answer?.items ?? []).map(one => one.metadata?.name ?? "").sort();
    return (
        <Question props={props}>
            <TextInput id={id} value={(props.formData as string | undefined) ?? ""} onChange={(_, text) => set(props, text || undefined)} list={listId} isRequired={props.required} isDisabled={props.disabled} aria-describedby={`${id}-help`} validated={props.rawErrors?.length ? "error" : "default"} autoComplete="off" />
            <datalist id={listId}>{names.map(name => <option key={name} value={name} />)}</datalist>
            {/* A browser offers only what begins like what is written already. */}
            {asked.answer && <HelperText><HelperTextItem>{names.length > 0 ? t("imagesThere", { names: names.join(", ") }) : t("imagesNone")}</HelperTextItem></HelperText>}
            {asked.error && <HelperText><HelperTextItem variant="warning">{t("imagesFailed", { why: asked.error.message })}</HelperTextItem></HelperText>}
        </Question>
    );
}

export const fields = {
    DataSourcePicker, OwnerPicker, EntityPicker, OwnedEntityPicker, MyGroupsPicker, EntityNamePicker, MultiEntityPicker, EntityTagsPicker, RepoUrlPicker, Secret,
};
