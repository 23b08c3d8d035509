// Commands that people copy into a shell. Names of branches, hosts and objects are whatever somebody wrote: each is one word there, and
// never a command of its own.

/** A word as a shell takes it literally. */
export function shellWord(text: string): string {
    return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

/** A command whose values are words: sh`kubectl get vm ${name}`. */
export function sh(parts: TemplateStringsArray, ...values: (string | number | undefined)[]): string {
    return parts.reduce((command, part, at) => command + shellWord(String(values[at - 1] ?? "")) + part);
}

/** Commands for a terminal that is wherever it was used last: elsewhere than in the first workspace they would find nothing, or something else. */
export function withWorkspace(place: string, commands: readonly string[]): string[] {
    return place === "root" ? [...commands] : [sh`fairway workspace use :${place}`, ...commands];
}
