// A run as a command: what was answered in the form, said in a terminal.

import { parseRef } from "../../catalog/entity";
import { sh } from "../../widgets/command";

interface Asked {
    templateRef: string;
    values: Record<string, unknown>;
    /** Names of what is secret: a command is kept in the history of a shell, so that a file has to say what they are. */
    secrets: readonly string[];
    keep: boolean;
}

export function newCommand({ templateRef, values, secrets, keep }: Asked): string {
    const { namespace, name } = parseRef(templateRef);
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    return [
        sh`fairway new ${namespace === "default" ? name : templateRef} -y`,
        ...given.map(([key, value]) => sh`--set ${`${key}=${typeof value === "string" ? value : JSON.stringify(value)}`}`),
        ...secrets.map(key => sh`--secret-file ${`${key}=${key}.txt`}`),
        ...(keep ? ["--keep"] : []),
    ].join(" ");
}
