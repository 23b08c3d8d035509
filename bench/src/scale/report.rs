//! The table of a scale run, and whether its promises hold.

use std::fmt::Write;

use super::{Growth, Point};
use crate::report::{Circumstances, number};

/// Memory at most this part of the peer's.
const MEMORY: f64 = 4.0;
/// Ready so many times sooner.
const READY: f64 = 10.0;
/// Cost at the largest size, compared with the smallest: 1 is flat, and the rest is noise of these machines.
const FLAT: f64 = 1.5;

type Column = (&'static str, fn(&Point) -> f64);

const COLUMNS: [Column; 4] = [
    ("create", |point| point.create),
    ("GET", |point| point.get),
    ("apply, update", |point| point.apply),
    ("LIST of 500", |point| point.page),
];

/// One figure of a measurement.
type Reading = fn(&Growth) -> f64;

pub(super) fn compare(fairway: &Growth, peer: &Growth) -> String {
    let mut text = Circumstances::gather(1, 1.0).scale_heading();
    text += "\n## Promises\n\n| promise | Fairway | peer | ratio | held |\n|---|---|---|---|---|\n";
    let mut promise = |what: &str, ours: f64, theirs: f64, at_least: f64| {
        let ratio = theirs / ours;
        let held = if ratio >= at_least { "yes" } else { "NO" };
        let _ = writeln!(
            text,
            "| {what}: at least {at_least} times less | {} | {} | {} | {held} |",
            number(Some(ours)),
            number(Some(theirs)),
            number(Some(ratio)),
        );
    };
    promise(
        "MiB with objects, CRDs and watchers",
        fairway.megabytes_with_watchers,
        peer.megabytes_with_watchers,
        MEMORY,
    );
    promise(
        "ms until ready on all of it",
        fairway.ready_ms,
        peer.ready_ms,
        READY,
    );
    for (name, column) in COLUMNS {
        let (growth, theirs) = (growth(fairway, column), growth(peer, column));
        let held = if growth <= FLAT { "yes" } else { "NO" };
        let _ = writeln!(
            text,
            "| cost of {name}, largest / smallest size: at most {FLAT} | {} | {} | | {held} |",
            number(Some(growth)),
            number(Some(theirs)),
        );
    }
    text += "\n## CPU ms per operation, 16 clients (LIST: 1)\n\n| objects |";
    for (name, _) in COLUMNS {
        let _ = write!(text, " {name}: Fairway | peer |");
    }
    text += " MiB: Fairway | peer |\n|---|";
    text += &"---|".repeat(COLUMNS.len() * 2 + 2);
    text.push('\n');
    for (ours, theirs) in fairway.points.iter().zip(&peer.points) {
        let _ = write!(text, "| {} |", ours.objects);
        for (_, column) in COLUMNS {
            let _ = write!(
                text,
                " {} | {} |",
                number(Some(column(ours))),
                number(Some(column(theirs)))
            );
        }
        let _ = writeln!(
            text,
            " {} | {} |",
            number(Some(ours.megabytes)),
            number(Some(theirs.megabytes))
        );
    }
    text += "\n## On top\n\n| what | Fairway | peer |\n|---|---|---|\n";
    let rows: [(&str, Reading); 6] = [
        ("1,000 CRDs until established, s", |growth| growth.crds_seconds),
        ("MiB with the CRDs", |growth| growth.megabytes_with_crds),
        ("MiB with 1,000 watchers", |growth| growth.megabytes_with_watchers),
        ("CPU ms per event and watcher", |growth| growth.event),
        ("ready after a start on all of it, ms", |growth| growth.ready_ms),
        ("MiB after that start", |growth| growth.megabytes_after_start),
    ];
    for (what, figure) in rows {
        let _ = writeln!(
            text,
            "| {what} | {} | {} |",
            number(Some(figure(fairway))),
            number(Some(figure(peer)))
        );
    }
    text
}

fn growth(server: &Growth, column: fn(&Point) -> f64) -> f64 {
    match (server.points.first(), server.points.last()) {
        (Some(first), Some(last)) => column(last) / column(first),
        _ => f64::NAN,
    }
}
