// The objects of an Application from left to right: what is declared, and what grew out of it.

import type { KeyboardEvent, ReactNode } from "react";
import { toneOf } from "../../widgets";
import { type Placed, layOut, type TreeNode } from "./model";
import { t } from "./text";

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [210, 48, 60, 14];
const COLOURS: Record<string, string> = { green: "#3d7317", red: "#b1380b", orange: "#ca6c0f", yellow: "#b98412", blue: "#0066cc", grey: "#707070", purple: "#5e40be", teal: "#147878" };

const x = (column: number): number => column * (WIDTH + GAP_X) + 4;
const y = (row: number): number => row * (HEIGHT + GAP_Y) + 4;
const short = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function Tree(props: { name: string; health: string; nodes: TreeNode[]; chosen?: string; onChoose: (id: string) => void }): ReactNode {
    const { placed, columns, rows } = layOut(props.nodes);
    const rowOf = new Map(placed.map(it => [it.id, it]));
    return (
        <div className="fw-tree" tabIndex={0} role="region" aria-label={t("treeLabel", { name: props.name })}>
            <svg width={x(columns)} height={y(rows)} role="group" aria-label={t("treeLabel", { name: props.name })}>
                {placed.map(it => {
                    const from = rowOf.get(it.parent);
                    const [startX, startY] = [x(from?.column ?? 0) + WIDTH, y(from?.row ?? 0) + HEIGHT / 2];
                    const [endX, endY] = [x(it.column), y(it.row) + HEIGHT / 2];
                    return <path key={`to ${it.id}`} d={`M${startX},${startY} C${startX + GAP_X / 2},${startY} ${endX - GAP_X / 2},${endY} ${endX},${endY}`} />;
                })}
                <Box id="" title={props.name} kind="Application" health={props.health} left={x(0)} top={y(0)} isChosen={props.chosen === ""} onChoose={props.onChoose} />
                {placed.map(it => <Node key={it.id} of={it} isChosen={props.chosen === it.id} onChoose={props.onChoose} />)}
            </svg>
        </div>
    );
}

function Node(props: { of: Placed; isChosen: boolean; onChoose: (id: string) => void }): ReactNode {
    const { id, node, column, row } = props.of;
    return <Box id={id} title={node.name} kind={node.kind} health={node.health?.status} left={x(column)} top={y(row)} isChosen={props.isChosen} onChoose={props.onChoose} />;
}

function Box(props: { id: string; title: string; kind: string; health?: string; left: number; top: number; isChosen: boolean; onChoose: (id: string) => void }): ReactNode {
    const subtitle = [props.kind, props.health].filter(Boolean).join(" · ");
    const onKeyDown = (event: KeyboardEvent): void => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        props.onChoose(props.id);
    };
    return (
        <g
            role="button" tabIndex={0} aria-pressed={props.isChosen}
            className={props.isChosen ? "chosen" : undefined} transform={`translate(${props.left},${props.top})`}
            onClick={() => props.onChoose(props.id)} onKeyDown={onKeyDown}
        >
            <rect width={WIDTH} height={HEIGHT} rx={6} />
            <rect width={5} height={HEIGHT - 12} x={6} y={6} rx={2} style={{ fill: COLOURS[toneOf(props.health ?? "")], stroke: "none" }} />
            <text x={20} y={20}>{short(props.title, 25)} </text>
            <text x={20} y={37} className="small">{short(subtitle, 30)}</text>
        </g>
    );
}
