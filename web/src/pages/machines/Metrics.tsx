// What a machine uses and has used: its node keeps the last hour, also while nobody looks.

import { Alert } from "@patternfly/react-core/dist/dynamic/components/Alert";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/dynamic/components/ToggleGroup";
import { lazy, type ReactNode, Suspense, useMemo } from "react";
import { useSearchParams } from "react-router";
import { json, LIVE_MS, useAnswer } from "../../api";
import type { History } from "../../api/rest/machines";
import { t } from "../../text/machines";
import { Answered, Loading } from "../../widgets";
import { subresourcePath } from "./act";
import { clock, type Figure, FIGURES, type Range, rangeOf, RANGES, rowsOf, shown, summaryOf, windowOf, withGaps } from "./history";

// The library of charts is only for this tab.
const Chart = lazy(() => import("./Chart"));

type Word = "cpuUse" | "memoryUse" | "networkUse" | "storageUse" | "storageOperations";

/** Charts: title, lines, how far the axis reaches when nothing happens, and what makes one on the axis, so that its marks are round. */
const CHARTS: [Word, Figure[], number, number][] = [
    ["cpuUse", ["processors"], 10, 0.01], ["memoryUse", ["residentBytes"], 1, 1 << 20], ["networkUse", ["receivedBytesPerSecond", "sentBytesPerSecond"], 1000, 1],
    ["storageUse", ["readBytesPerSecond", "writtenBytesPerSecond"], 1000, 1], ["storageOperations", ["readsPerSecond", "writesPerSecond"], 1, 1],
];

export function Metrics(props: { namespace: string; name: string }): ReactNode {
    const [params, setParams] = useSearchParams();
    const range = rangeOf(params.get("range"));
    const path = subresourcePath("virtualmachineinstances", props.namespace, props.name, "guestosinfo/usage/history");
    const asked = useAnswer(path, signal => json<History>(path, { signal }), LIVE_MS);
    const choose = (chosen: Range): void => setParams(before => { before.set("range", chosen); return before; }, { replace: true });
    return (
        <>
            <ToggleGroup aria-label={t("range")}>
                {(Object.keys(RANGES) as Range[]).map(it => <ToggleGroupItem key={it} text={t(`range${it}`)} buttonId={`range-${it}`} isSelected={range === it} onChange={() => choose(it)} />)}
            </ToggleGroup>
            <Answered of={asked}>{history => (history.time.length === 0 ? <Alert isInline variant="info" title={t("notMeasured", { seconds: 2 * history.intervalSeconds })} /> : <Measured history={history} range={range} />)}</Answered>
        </>
    );
}

function Measured({ history, range }: { history: History; range: Range }): ReactNode {
    const [from, to] = windowOf(history.time, range);
    const charts = useMemo(() => CHARTS.map(([title, figures, least, per]) => {
        const { time, columns } = withGaps(history, figures);
        const lines = figures.map((figure, n) => ({ label: t(figure), values: (columns[n] ?? []).map(value => (value === null ? null : value / per)) }));
        return { title, figures, least, per, time, lines };
    }), [history]);
    const format = (at: number): string => clock(at, range === "5m");
    return (
        <>
            <div className="fw-plots">
                <Suspense fallback={<Loading />}>
                    {charts.map(({ title, figures, least, per, time, lines }) => (
                        <figure key={title} className="fw-plot-frame">
                            <figcaption><strong>{t(title)}</strong>: {figures.map(figure => said(history, figure, range)).join("; ")}</figcaption>
                            {figures.every(figure => history[figure].every(it => it === null))
                                ? <p className="fw-muted">{t("unknownTraffic")}</p>
                                : <Chart time={time} lines={lines} from={from} to={to} least={least} shown={value => shown[figures[0] ?? "processors"](value * per)} clock={format} timeLabel={t("time")} />}
                        </figure>
                    ))}
                </Suspense>
            </div>
            <p className="fw-muted">{t("metricsNote", { seconds: history.intervalSeconds })}</p>
            <details>
                <summary>{t(range === "1h" ? "asTableOfMinutes" : "asTable")}</summary>
                <Table history={history} range={range} />
            </details>
        </>
    );
}

function said(history: History, figure: Figure, range: Range): string {
    const { last, most } = summaryOf(history, figure, range);
    const text = (value: number | null): string => (value === null ? "–" : shown[figure](value));
    return t("nowAndMost", { what: t(figure), last: text(last), most: text(most) });
}

function Table({ history, range }: { history: History; range: Range }): ReactNode {
    return (
        <div className="fw-scroll" tabIndex={0} role="region" aria-label={t("metrics")}>
            <table className="fw-figures">
                <thead><tr><th scope="col">{t("time")}</th>{FIGURES.map(figure => <th key={figure} scope="col">{t(figure)}</th>)}</tr></thead>
                <tbody>
                    {rowsOf(history, range).map(row => (
                        <tr key={row.at}><th scope="row">{clock(row.at, range === "5m")}</th>{FIGURES.map((figure, n) => { const value = row.values[n] ?? null; return <td key={figure}>{value === null ? "–" : shown[figure](value)}</td>; })}</tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
