// Backstage writes `ui:` options beside the schema; rjsf wants them apart. And answers that are secret go another way than the others.

import type { RJSFSchema, UiSchema } from "@rjsf/utils";

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A schema and the `ui:` options that were in it. */
export function splitUi(schema: Json): { schema: RJSFSchema; uiSchema: UiSchema } {
    const uiSchema: Json = {};
    const plain = strip(schema, uiSchema);
    return { schema: plain as RJSFSchema, uiSchema: uiSchema as UiSchema };
}

function strip(schema: Json, ui: Json): Json {
    const plain: Json = {};
    for (const [key, value] of Object.entries(schema)) {
        if (key.startsWith("ui:")) ui[key] = value;
        else if (key === "enumNames") ui["ui:enumNames"] = value;
        else if ((key === "properties" || key === "dependencies") && isObject(value)) plain[key] = properties(value, ui);
        else if (key === "items" && isObject(value)) plain[key] = strip(value, child(ui, "items"));
        else if ((key === "allOf" || key === "anyOf" || key === "oneOf") && Array.isArray(value)) {
            plain[key] = value.map(one => (isObject(one) ? strip(one, ui) : one));
        } else if ((key === "then" || key === "else") && isObject(value)) plain[key] = strip(value, ui);
        else plain[key] = value;
    }
    return plain;
}

function properties(schemas: Json, ui: Json): Json {
    const plain: Json = {};
    for (const [name, schema] of Object.entries(schemas)) {
        // A dependency is a schema of the whole object; its questions have their options at the same place.
        const isDependency = isObject(schema) && !("type" in schema) && ("oneOf" in schema || "properties" in schema) && !("title" in schema);
        plain[name] = isObject(schema) ? strip(schema, isDependency ? ui : child(ui, name)) : schema;
    }
    return plain;
}

function child(ui: Json, name: string): Json {
    const known = ui[name];
    if (isObject(known)) return known;
    const made: Json = {};
    ui[name] = made;
    return made;
}

/** Whether an answer must not be kept with the others. */
export function isSecret(schema: unknown): boolean {
    if (!isObject(schema)) return false;
    const options = isObject(schema["ui:options"]) ? schema["ui:options"] : {};
    return [schema["ui:field"], options.field].includes("Secret") || [schema["ui:widget"], options.widget, schema.format].includes("password");
}

/** Names of secret answers of a page, those in branches included. */
export function secretNames(schema: unknown, found = new Set<string>()): Set<string> {
    if (Array.isArray(schema)) schema.forEach(one => secretNames(one, found));
    if (!isObject(schema)) return found;
    if (isObject(schema.properties)) {
        for (const [name, one] of Object.entries(schema.properties)) if (isSecret(one)) found.add(name);
    }
    for (const key of ["dependencies", "allOf", "anyOf", "oneOf", "then", "else"]) {
        const inner = schema[key];
        if (key === "dependencies" && isObject(inner)) Object.values(inner).forEach(one => secretNames(one, found));
        else secretNames(inner, found);
    }
    return found;
}

/** Answers as the server wants them: what is secret apart from the rest. */
export function splitSecrets(schemas: unknown[], answers: Json): { values: Json; secrets: Record<string, string> } {
    const names = new Set<string>();
    schemas.forEach(schema => secretNames(schema, names));
    const values: Json = {};
    const secrets: Record<string, string> = {};
    for (const [name, answer] of Object.entries(answers)) {
        if (!names.has(name)) values[name] = answer;
        else if (answer !== undefined && answer !== "") secrets[name] = String(answer);
    }
    return { values, secrets };
}

/** The questions of a template by name, in the order in which they are asked, with the titles that people have read; those in branches included. */
export function titlesOf(schema: unknown, found = new Map<string, string>()): Map<string, string> {
    if (Array.isArray(schema)) schema.forEach(one => titlesOf(one, found));
    if (!isObject(schema)) return found;
    if (isObject(schema.properties)) {
        for (const [name, one] of Object.entries(schema.properties)) {
            const title = isObject(one) && typeof one.title === "string" ? one.title : undefined;
            // A branch names the question again that it depends on, without its title.
            if (title !== undefined || !found.has(name)) found.set(name, title ?? name);
        }
    }
    if (isObject(schema.dependencies)) Object.values(schema.dependencies).forEach(one => titlesOf(one, found));
    for (const key of ["oneOf", "anyOf", "allOf", "then", "else"]) titlesOf(schema[key], found);
    return found;
}

/** The questions of a name, wherever it is asked. */
function questionsOf(schema: unknown, name: string): Json[] {
    if (Array.isArray(schema)) return schema.flatMap(one => questionsOf(one, name));
    if (!isObject(schema)) return [];
    const own = isObject(schema.properties) ? schema.properties[name] : undefined;
    const branches = [...(isObject(schema.dependencies) ? Object.values(schema.dependencies) : []), ...["oneOf", "anyOf", "allOf", "then", "else"].map(key => schema[key])];
    return [...(isObject(own) ? [own] : []), ...branches.flatMap(one => questionsOf(one, name))];
}

/** What a chosen answer is called on its page, if it has a name there. */
export function choiceName(schema: unknown, question: string, value: unknown): string | undefined {
    for (const asked of questionsOf(schema, question)) {
        const offer = isObject(asked.items) ? asked.items : asked;
        const at = Array.isArray(offer.enum) ? offer.enum.indexOf(value) : -1;
        const names = offer.enumNames ?? offer["ui:enumNames"];
        const one = Array.isArray(offer.oneOf) ? offer.oneOf.find(it => isObject(it) && it.const === value) : undefined;
        const found: unknown = Array.isArray(names) && at >= 0 ? names[at] : isObject(one) ? one.title : undefined;
        if (typeof found === "string") return found;
    }
    return undefined;
}
