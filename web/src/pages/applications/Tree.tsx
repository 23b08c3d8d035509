// The objects of an Application from left to right: what is declared, and what grew out of it.

import { Button } from "@patternfly/react-core/dist/dynamic/components/Button";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { t } from "../../text/applications";
import { toneOf } from "../../widgets";
import { fitting, LARGEST, layOut, type Placed, SMALLEST, type TreeNode } from "./model";

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [210, 48, 60, 14];
const COLOURS: Record<string, string> = { green: "#3d7317", red: "#b1380b", orange: "#ca6c0f", yellow: "#b98412", blue: "#0066cc", grey: "#707070", purple: "#5e40be", teal: "#147878" };

const x = (column: number): number => column * (WIDTH + GAP_X) + 4;
const y = (row: number): number => row * (HEIGHT + GAP_Y) + 4;
const short = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

interface Props {
    name: string;
    health: string;
    sync: string;
    nodes: TreeNode[];
    chosen?: string;
    onChoose: (id: string) => void;
    /** The Application itself was chosen. */
    onRoot: () => void;
}

export function Tree(props: Props): ReactNode {
    const { placed, columns, rows } = layOut(props.nodes);
    const rowOf = new Map(placed.map(it => [it.id, it]));
    const [wide, high] = [x(columns), y(rows)];
    const box = useRef<HTMLDivElement>(null);
    const [room, setRoom] = useState(0);
    // Nobody has said how large: as large as there is room.
    const [asked, setAsked] = useState<number>();
    useEffect(() => {
        const element = box.current;
        if (!element) return;
        const observer = new ResizeObserver(() => setRoom(element.clientWidth));
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    const scale = asked ?? fitting(room, wide);
    return (
        <div>
            <div className="fw-tree-tools" role="group" aria-label={t("size")}>
                <Button variant="secondary" size="sm" isDisabled={asked === undefined} onClick={() => setAsked(undefined)}>{t("fit")}</Button>
                <Button variant="secondary" size="sm" aria-label={t("zoomOut")} isDisabled={scale <= SMALLEST} onClick={() => setAsked(Math.max(SMALLEST, scale - 0.2))}>−</Button>
                <Button variant="secondary" size="sm" aria-label={t("zoomIn")} isDisabled={scale >= LARGEST} onClick={() => setAsked(Math.min(LARGEST, scale + 0.2))}>+</Button>
            </div>
            <div ref={box} className="fw-tree" tabIndex={0} role="region" aria-label={t("treeLabel", { name: props.name })}>
                <svg width={wide * scale} height={high * scale} viewBox={`0 0 ${wide} ${high}`} role="group" aria-label={t("treeLabel", { name: props.name })}>
                    {placed.map(it => {
                        const from = rowOf.get(it.parent);
                        const [startX, startY] = [x(from?.column ?? 0) + WIDTH, y(from?.row ?? 0) + HEIGHT / 2];
                        const [endX, endY] = [x(it.column), y(it.row) + HEIGHT / 2];
                        return <path key={`to ${it.id}`} d={`M${startX},${startY} C${startX + GAP_X / 2},${startY} ${endX - GAP_X / 2},${endY} ${endX},${endY}`} />;
                    })}
                    <Box title={props.name} kind="Application" health={props.health} sync={props.sync} left={x(0)} top={y(0)} isChosen={false} onChoose={props.onRoot} />
                    {placed.map(it => <Node key={it.id} of={it} isChosen={props.chosen === it.id} onChoose={props.onChoose} />)}
                </svg>
            </div>
        </div>
    );
}

function Node(props: { of: Placed; isChosen: boolean; onChoose: (id: string) => void }): ReactNode {
    const { id, node, column, row } = props.of;
    return (
        <Box
            title={node.name} kind={node.kind} health={node.health?.status} sync={node.sync} requiresPruning={node.requiresPruning} hook={node.hook}
            left={x(column)} top={y(row)} isChosen={props.isChosen} onChoose={() => props.onChoose(id)}
        />
    );
}

interface BoxProps extends Stand { title: string; kind: string; health?: string; left: number; top: number; isChosen: boolean; onChoose: () => void }

function Box(props: BoxProps): ReactNode {
    const subtitle = [props.kind, props.health].filter(Boolean).join(" · ");
    const [shownTitle, shownSubtitle] = [short(props.title, 23), short(subtitle, 33)];
    // What can be seen, and the whole of what was cut: who speaks to the page says what he sees.
    const cut = [shownTitle !== props.title && props.title, shownSubtitle !== subtitle && subtitle];
    const label = [shownTitle, shownSubtitle, standWords(props), ...cut].filter(Boolean).join(", ");
    const onKeyDown = (event: KeyboardEvent): void => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        props.onChoose();
    };
    return (
        <g
            role="button" tabIndex={0} aria-pressed={props.isChosen} aria-label={label}
            className={props.isChosen ? "chosen" : undefined} transform={`translate(${props.left},${props.top})`}
            onClick={props.onChoose} onKeyDown={onKeyDown}
        >
            <rect width={WIDTH} height={HEIGHT} rx={6} />
            <rect width={5} height={HEIGHT - 12} x={6} y={6} rx={2} style={{ fill: COLOURS[toneOf(props.health ?? "")], stroke: "none" }} />
            <text x={20} y={20}>{shownTitle} </text>
            <text x={20} y={37} className="small">{shownSubtitle}</text>
            <Mark {...props} />
        </g>
    );
}

interface Stand { sync?: string; requiresPruning?: boolean; hook?: boolean }

/** How it stands to Git, in words. */
function standWords({ sync, requiresPruning, hook }: Stand): string {
    return [sync, requiresPruning && t("requiresPruning"), hook && t("hook")].filter(Boolean).join(", ");
}

/** Drawn in a circle of radius 9: a tick, an arrow upwards, a bin, an anchor, a dash. */
const SIGNS = { Synced: "M-4,0 L-1,3 L4,-3", OutOfSync: "M0,5 V-5 M-4,-1 L0,-5 L4,-1", prune: "M-4,-3 H4 M-3,-3 L-2,5 H2 L3,-3 M-1,-5 H1", hook: "M0,-5 V5 M-3,-2 H3 M-4,1 Q-4,5 0,5 Q4,5 4,1", other: "M-3,0 H3" };

/** Argo CD's second mark: whether it is as Git has it. The form says it to those who do not see the colour. */
function Mark(props: Stand): ReactNode {
    const words = standWords(props);
    if (words === "") return null;
    const sign = props.requiresPruning ? SIGNS.prune : props.sync === "Synced" || props.sync === "OutOfSync" ? SIGNS[props.sync] : props.hook ? SIGNS.hook : SIGNS.other;
    return (
        <g transform={`translate(${WIDTH - 17},15)`}>
            <title>{words}</title>
            <circle r={9} style={{ fill: COLOURS[toneOf(props.sync ?? "")] }} />
            <path d={sign} style={{ stroke: "#fff", strokeWidth: 1.8 }} />
        </g>
    );
}
