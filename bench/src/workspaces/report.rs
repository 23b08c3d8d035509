//! The table of a run with workspaces, whether its floors hold, and what others need for a tenant.

use std::fmt::Write;

use super::Measured;
use crate::report::{Circumstances, number};

/// CPU milliseconds from creation until ready, and settled.
const CREATION: f64 = 50.0;
/// Kilobytes of an idle workspace.
const MEMORY: f64 = 20.0;
/// CPU milliseconds of a start with all of them.
const START: f64 = 5_000.0;
/// An operation in one of many, against one of one.
const OPERATION: f64 = 1.1;
/// How much slower at most, half of the time, a request is while a neighbour is flooded.
const SLOWER: f64 = 10.0;
/// Megabytes of one kube-apiserver, without its etcd: what an operator plans for each.
const KUBE_APISERVER: f64 = 300.0;
/// Mebibytes that vcluster's Helm chart requests for the control plane of one virtual cluster, and thousandths of a core.
const VCLUSTER: (f64, f64) = (256.0, 200.0);

pub(super) fn write(measured: &Measured) -> String {
    let mut text = Circumstances::gather(1, 1.0).workspaces_heading(measured.count);
    text += "\n## Floors\n\n| floor | measured | held |\n|---|---|---|\n";
    let mut floor = |what: &str, at_most: f64, value: f64| {
        let held = if value <= at_most { "yes" } else { "NO" };
        let _ = writeln!(
            text,
            "| {what}: at most {at_most} | {} | {held} |",
            number(Some(value))
        );
    };
    let (creation, start) = (&measured.creation, &measured.start);
    floor(
        "CPU ms of each, from creation until ready and settled",
        CREATION,
        creation.cpu_ms,
    );
    floor(
        "KB of memory of each, idle for some minutes after they were made",
        MEMORY,
        creation.kilobytes_rested,
    );
    floor(
        "KB of memory of each, idle, after a start",
        MEMORY,
        start.kilobytes_each,
    );
    floor(
        "CPU ms of a start with all, until nothing was left to do",
        START,
        start.cpu_idle_ms,
    );
    for watches in [creation.watches, measured.twins.watches] {
        if let (Some(before), Some(after)) = watches {
            floor("watches more than before", 0.0, after - before);
        }
    }
    for it in measured.operations.iter().filter(|it| !it.is_spread) {
        let what = format!("{} in one of {}, against one of 1", it.operation, measured.count);
        floor(&what, OPERATION, it.ratio);
    }
    for it in &measured.fairness {
        let what = format!(
            "p50 of {} while a neighbour is flooded, against quiet",
            it.operation
        );
        floor(&what, SLOWER, it.flooded.0 / it.alone.0);
    }
    figures(&mut text, measured);
    others(&mut text, measured);
    text
}

fn figures(text: &mut String, measured: &Measured) {
    let Measured {
        creation,
        start,
        twins,
        own_kinds,
        ..
    } = measured;
    *text += "\n## Figures\n\n| what | |\n|---|---|\n";
    let mut row = |what: &str, value: Option<f64>| {
        let _ = writeln!(text, "| {what} | {} |", number(value));
    };
    row("CPU ms of each of the last tenth", Some(creation.last_cpu_ms));
    row(
        "from its first event until ready, 16 clients, p50 ms",
        Some(creation.p50_ms),
    );
    row("the same, p99 ms", Some(creation.p99_ms));
    row("all of them, s", Some(creation.seconds));
    row(
        "MiB resident with all of them, just made",
        Some(creation.megabytes),
    );
    row("a start with all: ready after, ms", Some(start.ready_ms));
    row("a start with all: CPU ms until ready", Some(start.cpu_ready_ms));
    row("a start with all: CPU ms until idle", Some(start.cpu_idle_ms));
    row("watches that the server has open", start.watches);
    row(
        "same-named namespaces in two of them, until both were filled, ms",
        Some(twins.reconciled_ms),
    );
    row(
        "same-named objects in two of them, until one watch saw both, ms",
        Some(twins.seen_ms),
    );
    row("workspaces with a CRD of their own", Some(own_kinds.count as f64));
    row("CPU ms of each such CRD", Some(own_kinds.cpu_ms));
    row("KB of each such CRD", Some(own_kinds.kilobytes_each));
    row("watches for each such CRD", own_kinds.watches_each);
    *text += "\n| CPU ms per operation, medians | one of 1 | one of many | ratio |\n|---|---|---|---|\n";
    for it in &measured.operations {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            it.operation,
            number(Some(it.in_one)),
            number(Some(it.in_many)),
            number(Some(it.ratio))
        );
    }
    *text += "\nA quiet workspace while 128 clients flood its neighbour (GET: beside lists of 100; create: beside creates).\n\n\
             | request | alone: p50 / p99 ms | flooded: p50 / p99 ms | factor: p50 / p99 | flood: done / refused per s |\n\
             |---|---|---|---|---|\n";
    for it in &measured.fairness {
        let pair = |(a, b): (f64, f64)| format!("{} / {}", number(Some(a)), number(Some(b)));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            it.operation,
            pair(it.alone),
            pair(it.flooded),
            pair((it.flooded.0 / it.alone.0, it.flooded.1 / it.alone.1)),
            pair((it.flood_rate, it.refused_rate))
        );
    }
}

fn others(text: &mut String, measured: &Measured) {
    let ours = measured
        .creation
        .kilobytes_rested
        .max(measured.start.kilobytes_each);
    let all = |megabytes: f64| number(Some(megabytes * measured.count as f64 / 1e3));
    let _ = write!(
        text,
        "\n## What a tenant needs\n\n\
         | a tenant is | memory of each | of {} | from |\n|---|---|---|---|\n\
         | a workspace of Fairway | {} KB | {} GB | this run |\n\
         | a kube-apiserver, without etcd | {KUBE_APISERVER} MB | {} GB | `make bench` measures one beside Fairway |\n\
         | a virtual cluster of vcluster | {} MiB and {} m of a core, requested | {} GB | loft-sh/vcluster, \
         `chart/values.yaml`, `controlPlane.statefulSet.resources.requests` (its limit is 2 GiB) |\n",
        measured.count,
        number(Some(ours)),
        all(ours / 1e3),
        all(KUBE_APISERVER),
        VCLUSTER.0,
        VCLUSTER.1,
        all(VCLUSTER.0 * 1.048_576),
    );
}
