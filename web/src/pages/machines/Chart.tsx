// A chart over time. The library draws on a canvas: whoever does not see it reads the caption and the table beside it.

import { type ReactNode, useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line { label: string; values: (number | null)[] }

interface Props {
    time: number[];
    lines: Line[];
    from: number;
    to: number;
    /** The axis reaches at least this far. */
    least: number;
    shown: (value: number) => string;
    clock: (seconds: number) => string;
    /** The word for the time in the legend. */
    timeLabel: string;
}

const HEIGHT = 190;
/** PatternFly's variables, with what they are where a theme lacks them. */
const COLOURS = [["--pf-t--global--color--brand--default", "#0066cc"], ["--pf-t--global--icon--color--status--warning--default", "#ca6c0f"]] as const;

export default function Chart(props: Props): ReactNode {
    const place = useRef<HTMLDivElement>(null);
    const chart = useRef<uPlot>(undefined);
    const latest = useRef(props);
    const labels = props.lines.map(it => it.label).join("\n");
    useEffect(() => { latest.current = props; });
    // Another one only for other lines; new values are laid into the one that is there.
    useEffect(() => {
        const box = place.current;
        if (!box) return;
        const colour = (name: string, otherwise: string): string => getComputedStyle(box).getPropertyValue(name).trim() || otherwise;
        const axis = { font: `12px ${getComputedStyle(box).fontFamily}`, stroke: () => colour("--pf-t--global--text--color--subtle", "#707070"), grid: { stroke: () => colour("--pf-t--global--border--color--default", "#c7c7c7"), width: 1 } };
        const made = new uPlot({
            width: Math.max(box.clientWidth, 100), height: HEIGHT,
            cursor: { drag: { x: false, y: false }, sync: { key: "machine" } },
            scales: {
                x: { time: true, range: () => [latest.current.from, latest.current.to] },
                y: { range: (_chart, _least, most) => [0, Math.max(most, latest.current.least) * 1.1] },
            },
            axes: [
                { ...axis, space: 90, values: (_chart, splits) => splits.map(at => latest.current.clock(at)) },
                { ...axis, size: 80, values: (_chart, splits) => splits.map(value => latest.current.shown(value)) },
            ],
            series: [
                { label: latest.current.timeLabel, value: (_chart, at) => (at === null ? "–" : latest.current.clock(at)) },
                ...labels.split("\n").map((label, n) => {
                    const [name, otherwise] = COLOURS[n % COLOURS.length] ?? COLOURS[0];
                    return { label, stroke: () => colour(name, otherwise), width: 2, value: (_chart: uPlot, value: number | null) => (value === null ? "–" : latest.current.shown(value)) };
                }),
            ],
        }, [latest.current.time, ...latest.current.lines.map(it => it.values)], box);
        chart.current = made;
        const observer = new ResizeObserver(() => made.setSize({ width: Math.max(box.clientWidth, 100), height: HEIGHT }));
        observer.observe(box);
        return () => {
            observer.disconnect();
            made.destroy();
            chart.current = undefined;
        };
    }, [labels]);
    useEffect(() => { chart.current?.setData([props.time, ...props.lines.map(it => it.values)]); }, [props.time, props.lines, props.from, props.to]);
    // The caption says what a single line is; which of two is which, the legend has to say.
    return <div ref={place} className={props.lines.length === 1 ? "fw-plot fw-plot-one" : "fw-plot"} aria-hidden="true" />;
}
