// Secrets as they are shown to somebody who did not ask for what is in them: the keys, and pluses in place of the values, as Argo CD has it.

type Json = Record<string, unknown>;

const MASK = "++++++++";
/** Where kubectl keeps the whole manifest, the values included. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

function isObject(value: unknown): value is Json {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSecret(object: unknown): object is Json {
    return isObject(object) && object.kind === "Secret" && (object.apiVersion === undefined || object.apiVersion === "v1");
}

/** The value that is meant, whichever of the two fields it is written in. */
function plain(field: string, value: unknown): string {
    if (field === "data") return String(value);
    return btoa(Array.from(new TextEncoder().encode(String(value)), byte => String.fromCharCode(byte)).join(""));
}

/** The same objects without their values. Equal values have equally many pluses and others more, so that a difference still shows. */
export function maskedTogether<T>(objects: readonly T[]): T[] {
    const seen = new Map<string, string[]>();
    const mask = (key: string, value: string): string => {
        const known = seen.get(key) ?? [];
        if (!known.includes(value)) known.push(value);
        seen.set(key, known);
        return MASK + "+".repeat(known.indexOf(value));
    };
    return objects.map(object => {
        if (!isSecret(object)) return object;
        const shown: Json = { ...object };
        for (const field of ["data", "stringData"]) {
            const values = object[field];
            if (isObject(values)) shown[field] = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, mask(key, plain(field, value))]));
            else if (values !== undefined && values !== null) shown[field] = MASK;
        }
        const { metadata } = object;
        if (isObject(metadata) && isObject(metadata.annotations) && LAST_APPLIED in metadata.annotations) {
            shown.metadata = { ...metadata, annotations: { ...metadata.annotations, [LAST_APPLIED]: MASK } };
        }
        return shown as T;
    });
}

export function masked<T>(object: T): T {
    const [shown] = maskedTogether([object]);
    return shown as T;
}
