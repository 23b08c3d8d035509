// Tiles without end: only those that can be seen are in the document, so that ten thousand cost what thirty do.

import { type ReactNode, useEffect, useRef, useState } from "react";
import { visibleRange } from "../../widgets/window";

export function Tiles(props: { count: number; height: number; minWidth: number; label: string; render: (index: number) => ReactNode }): ReactNode {
    const place = useRef<HTMLDivElement>(null);
    const [view, setView] = useState({ top: 0, room: 800, width: 1000 });
    useEffect(() => {
        const box = place.current;
        if (!box) return;
        const look = (): void => setView({ top: box.scrollTop, room: box.clientHeight, width: box.clientWidth });
        look();
        box.addEventListener("scroll", look, { passive: true });
        const observer = new ResizeObserver(look);
        observer.observe(box);
        return () => {
            box.removeEventListener("scroll", look);
            observer.disconnect();
        };
    }, []);
    const columns = Math.max(1, Math.floor(view.width / props.minWidth));
    const rows = Math.ceil(props.count / columns);
    const { first, last } = visibleRange(view.top, view.room, props.height, rows, 3);
    const tiles: ReactNode[] = [];
    for (let index = first * columns; index < Math.min(props.count, last * columns); index += 1) {
        const [row, column] = [Math.floor(index / columns), index % columns];
        const style = { top: row * props.height, height: props.height, left: `${(100 / columns) * column}%`, width: `${100 / columns}%` };
        tiles.push(<div key={index} role="listitem" className="fw-tiles-item" style={style} aria-setsize={props.count} aria-posinset={index + 1}>{props.render(index)}</div>);
    }
    return (
        <div ref={place} className="fw-tiles" tabIndex={0} role="list" aria-label={props.label} style={{ height: `min(70vh, ${rows * props.height + 4}px)` }}>
            <div role="presentation" style={{ height: rows * props.height, position: "relative" }}>{tiles}</div>
        </div>
    );
}
