// What a machine uses, measured while somebody looks.

import { type ReactNode, useEffect, useState } from "react";
import { type ApiError, asApiError, json } from "../../api";
import { Failed, Loading } from "../../widgets";
import { subresourcePath } from "./act";
import { cpuPercent, type Sample, type Usage } from "./model";
import { t } from "./text";

const EVERY_MS = 2_000;
const KEPT = 150;

export function Metrics(props: { namespace: string; name: string }): ReactNode {
    const { namespace, name } = props;
    const [samples, setSamples] = useState<Sample[]>([]);
    const [error, setError] = useState<ApiError>();
    useEffect(() => {
        const abort = new AbortController();
        const path = subresourcePath("virtualmachineinstances", namespace, name, "guestosinfo/usage");
        const measure = (): void => {
            if (document.visibilityState === "hidden") return;
            json<Usage>(path, { signal: abort.signal }).then(
                usage => { setError(undefined); setSamples(before => [...before, { at: Date.now(), usage }].slice(-KEPT)); },
                (thrown: unknown) => { if (!abort.signal.aborted) setError(asApiError(thrown)); },
            );
        };
        measure();
        const timer = setInterval(measure, EVERY_MS);
        return () => { clearInterval(timer); abort.abort(); };
    }, [namespace, name]);
    if (error && samples.length === 0) return <Failed error={error} />;
    if (samples.length === 0) return <Loading />;
    const cpu = samples.slice(1).map((sample, at) => cpuPercent(samples[at] ?? sample, sample));
    const memory = samples.map(sample => sample.usage.residentBytes / 1_048_576);
    return (
        <>
            <Chart title={t("cpuUse")} values={cpu} shown={value => t("percent", { n: Math.round(value) })} />
            <Chart title={t("memoryUse")} values={memory} shown={value => t("mebibytes", { n: Math.round(value) })} />
            <p className="fw-muted">{t("metricsNote")}</p>
        </>
    );
}

function Chart(props: { title: string; values: number[]; shown: (value: number) => string }): ReactNode {
    const last = props.values.at(-1) ?? 0;
    const top = Math.max(1, ...props.values) * 1.2;
    const points = props.values.map((value, at) => `${(at / Math.max(1, props.values.length - 1)) * 300},${100 - (value / top) * 100}`).join(" ");
    return (
        <figure style={{ margin: 0 }}>
            <figcaption><strong>{props.title}</strong>: {props.shown(last)}</figcaption>
            <svg className="fw-chart" viewBox="0 0 300 100" preserveAspectRatio="none" role="img" aria-label={`${props.title}: ${props.shown(last)}`}><polyline points={points} /></svg>
        </figure>
    );
}
