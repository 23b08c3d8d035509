// What the scaffolder answers, where it is Backstage's API and therefore in no OpenAPI document of ours.

export interface ParameterSchema {
    title?: string;
    description?: string;
    steps: { title?: string; description?: string; schema: Record<string, unknown> }[];
}

export interface Verdict {
    apiVersion?: string;
    kind?: string;
    name?: string;
    namespace?: string | null;
    allowed: boolean | null;
    message?: string | null;
}

export interface DryRun {
    log?: { body: { stepId?: string; message?: string } }[];
    steps?: { id: string; name: string; action: string; state: string }[];
    output?: { links?: { title?: string; url?: string }[]; text?: { title?: string; content?: string }[] };
    foreseen?: {
        succeeds: boolean;
        problem?: string | null;
        repositories: { url: string; files: { path: string; size: number; executable?: boolean; content?: string | null }[] }[];
        objects: Verdict[];
        manifests: Verdict[];
        [key: string]: unknown;
    };
}

/** Only what was foreseen and would be accepted is created: as long as nobody has looked, nobody knows what would happen. */
export function mayCreate(asked: { answer?: DryRun; error?: unknown; isLoading: boolean }): boolean {
    return !asked.isLoading && !asked.error && asked.answer?.foreseen?.succeeds === true;
}
