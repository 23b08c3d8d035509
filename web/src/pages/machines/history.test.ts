import { describe, expect, it } from "vitest";
import type { History } from "../../api/rest/machines";
import { FIGURES, rangeOf, rowsOf, shown, summaryOf, windowOf, withGaps } from "./history";

/** Measured at these seconds; all figures are the same. */
function measured(time: number[], values: (number | null)[]): History {
    return { intervalSeconds: 10, time, ...Object.fromEntries(FIGURES.map(figure => [figure, values])) } as unknown as History;
}

describe("the history of a machine", () => {
    it("ends with the last measurement", () => {
        expect(windowOf([100, 110, 400], "5m")).toEqual([100, 400]);
        expect(windowOf([], "1h")).toEqual([-3600, 0]);
        expect([rangeOf("1h"), rangeOf("5m"), rangeOf(null), rangeOf("1y")]).toEqual(["1h", "5m", "5m", "5m"]);
    });
    it("has no line over what was not measured", () => {
        expect(withGaps(measured([10, 20, 90, 100], [1, 2, 3, 4]), ["processors", "residentBytes"])).toEqual({ time: [10, 20, 30, 90, 100], columns: [[1, 2, null, 3, 4], [1, 2, null, 3, 4]] });
    });
    it.each([
        ["five minutes, each measurement", "5m", [10, 400, 410], [9, 1, null], [[410, null], [400, 1]]],
        ["an hour, the means of minutes", "1h", [0, 10, 50, 60, 70], [1, 2, 3, 4, null], [[60, 4], [0, 2]]],
        ["nothing yet", "1h", [], [], []],
    ] as const)("as a table: %s", (_why, range, time, values, expected) => {
        expect(rowsOf(measured([...time], [...values]), range).map(row => [row.at, row.values[0]])).toEqual(expected);
    });
    it("is summed up by what is looked at", () => {
        const history = measured([10, 400, 410], [9, 1, 2]);
        expect(summaryOf(history, "processors", "5m")).toEqual({ last: 2, most: 2 });
        expect(summaryOf(history, "processors", "1h")).toEqual({ last: 2, most: 9 });
        expect(summaryOf(measured([10], [null]), "processors", "1h")).toEqual({ last: null, most: null });
    });
});

it.each([
    ["processors", 0.256, "26 %"], ["processors", 2, "200 %"], ["residentBytes", 3 << 20, "3 MiB"], ["sentBytesPerSecond", 999, "999 B/s"],
    ["sentBytesPerSecond", 1_500_000, "1.5 MB/s"], ["readBytesPerSecond", 0, "0 B/s"], ["readsPerSecond", 0.25, "0.25 /s"],
] as const)("%s of %d is shown as %s", (figure, value, text) => {
    expect(shown[figure](value)).toBe(text);
});
