// Differences between two texts, line by line, with some lines around them (Myers' algorithm, bounded).

export interface Line {
    kind: "same" | "added" | "removed" | "skipped";
    text: string;
}

/** Beyond this many differences the texts are shown as wholly different: nobody reads such a list, and the cost grows with their square. */
const MAX_STEPS = 400;

export function diffLines(before: string, after: string, around = 3): Line[] {
    const [a, b] = [split(before), split(after)];
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let end = 0;
    while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
    const lines: Line[] = [
        ...a.slice(0, start).map(same),
        ...changed(a.slice(start, a.length - end), b.slice(start, b.length - end)),
        ...a.slice(a.length - end).map(same),
    ];
    return fold(lines, around);
}

function split(text: string): string[] {
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    return lines;
}

const same = (text: string): Line => ({ kind: "same", text });

function changed(a: string[], b: string[]): Line[] {
    const whole = (): Line[] => [...a.map(text => ({ kind: "removed" as const, text })), ...b.map(text => ({ kind: "added" as const, text }))];
    if (a.length === 0 || b.length === 0 || a.length + b.length > 20_000) return whole();
    const limit = Math.min(a.length + b.length, MAX_STEPS);
    const furthest = new Map<number, number>([[1, 0]]);
    const history: Map<number, number>[] = [];
    for (let step = 0; step <= limit; step += 1) {
        history.push(new Map(furthest));
        for (let k = -step; k <= step; k += 2) {
            const down = k === -step || (k !== step && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
            let x = down ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
            let y = x - k;
            while (x < a.length && y < b.length && a[x] === b[y]) { x += 1; y += 1; }
            furthest.set(k, x);
            if (x >= a.length && y >= b.length) return trace(a, b, history, step);
        }
    }
    return whole();
}

function trace(a: string[], b: string[], history: Map<number, number>[], steps: number): Line[] {
    const lines: Line[] = [];
    let [x, y] = [a.length, b.length];
    for (let step = steps; step >= 0; step -= 1) {
        const reached = history[step] ?? new Map<number, number>();
        const k = x - y;
        const down = k === -step || (k !== step && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
        const from = down ? k + 1 : k - 1;
        const fromX = reached.get(from) ?? 0;
        const fromY = fromX - from;
        while (x > fromX && y > fromY && x > 0 && y > 0) { lines.push(same(a[x - 1] ?? "")); x -= 1; y -= 1; }
        if (step === 0) break;
        if (down) { lines.push({ kind: "added", text: b[y - 1] ?? "" }); y -= 1; }
        else { lines.push({ kind: "removed", text: a[x - 1] ?? "" }); x -= 1; }
    }
    return lines.reverse();
}

/** Lines that are far from a change become one that says how many they are. */
function fold(lines: Line[], around: number): Line[] {
    const near = new Uint8Array(lines.length);
    lines.forEach((line, at) => {
        if (line.kind !== "same") near.fill(1, Math.max(0, at - around), Math.min(lines.length, at + around + 1));
    });
    const folded: Line[] = [];
    let skipped = 0;
    lines.forEach((line, at) => {
        if (near[at]) {
            if (skipped > 0) folded.push({ kind: "skipped", text: String(skipped) });
            skipped = 0;
            folded.push(line);
        } else skipped += 1;
    });
    if (skipped > 0) folded.push({ kind: "skipped", text: String(skipped) });
    return folded;
}
