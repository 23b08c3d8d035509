// Colours for YAML, line by line: enough to read it, and linear in its length.

export interface Piece {
    text: string;
    /** `k` key, `s` string, `n` number or word, `c` comment. */
    kind?: "k" | "s" | "n" | "c";
}

export function pieces(line: string): Piece[] {
    if (/^\s*#/.test(line)) return [{ text: line, kind: "c" }];
    const key = /^(\s*(?:- )*)([^\s:#'"{[-][^:]*|"[^"]*"|'[^']*'):(?=\s|$)/.exec(line);
    if (!key) {
        const item = /^(\s*(?:- )+)(.*)$/.exec(line);
        return item ? [{ text: item[1] ?? "" }, value(item[2] ?? "")] : [value(line)];
    }
    const rest = line.slice(key[0].length);
    return [{ text: key[1] ?? "" }, { text: `${key[2] ?? ""}:`, kind: "k" }, ...(rest ? [value(rest)] : [])];
}

function value(text: string): Piece {
    const bare = text.trim();
    if (/^(true|false|null|~|-?\d+(\.\d+)?)$/.test(bare)) return { text, kind: "n" };
    return bare === "" ? { text } : { text, kind: "s" };
}
