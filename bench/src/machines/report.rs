//! The tables, and whether the floors hold.

use std::fmt::Write as _;
use std::time::Duration;

use super::Measured;
use super::boot::Boot;
use crate::figures::milliseconds;
use crate::report::{Circumstances, number};

/// Milliseconds from the request until there is a QEMU.
const STARTED: f64 = 300.0;
/// Milliseconds that a boot takes longer.
const LONGER: f64 = 500.0;
/// Percent of CPU time that a boot takes more.
const MORE: f64 = 5.0;
/// Mebibytes of a running machine beside its QEMU.
const MEMORY: f64 = 5.0;
const MEBIBYTE: f64 = (1 << 20) as f64;

pub(super) fn write(measured: &Measured) -> String {
    let mut text = Circumstances::gather(measured.rounds, 1.0).machines_heading();
    let (ours, hand) = (Side::of(&measured.fairway), Side::of(&measured.by_hand));
    let more = (ours.cpu() / hand.cpu() - 1.0) * 100.0;
    let each = (measured.memory.fairway + measured.memory.beside) / MEBIBYTE;
    text += "\n## Floors\n\n| floor | measured | held |\n|---|---|---|\n";
    for (what, at_most, value) in [
        ("ms from apply until QEMU was started", STARTED, ours.started),
        (
            "ms that apply to login takes longer than by hand",
            LONGER,
            ours.login - hand.login,
        ),
        ("% of CPU time that a boot takes more than by hand", MORE, more),
        ("MiB of a running machine beside its QEMU", MEMORY, each),
    ] {
        let held = if value <= at_most { "yes" } else { "NO" };
        let _ = writeln!(
            text,
            "| {what}: at most {at_most} | {} | {held} |",
            number(Some(value))
        );
    }
    text += "\n## From apply to login, `tiny`, the same QEMU arguments\n\n\
             | | until QEMU, ms | until login, ms (min–max) | CPU of QEMU, ms | CPU of others, ms |\n|---|---|---|---|---|\n";
    for (name, side) in [("Fairway", &ours), ("by hand", &hand)] {
        let _ = writeln!(
            text,
            "| {name} | {} | {} ({}–{}) | {} | {} |",
            number(Some(side.started)),
            number(Some(side.login)),
            number(Some(side.range.0)),
            number(Some(side.range.1)),
            number(Some(side.qemu)),
            number(Some(side.others)),
        );
    }
    let _ = writeln!(
        text,
        "| ratio | | {:.2} | {:.2} | |",
        ours.login / hand.login,
        ours.qemu / hand.qemu
    );
    let memory = &measured.memory;
    let mebibytes = |bytes: f64| number(Some(bytes / MEBIBYTE));
    let _ = writeln!(
        text,
        "\n## Memory\n\n| | MiB |\n|---|---|\n| Fairway without machines | {} |\n| with the first one | {} |\n| each further one, in Fairway | {} |\n\
         | each, in processes beside its QEMU | {} |\n| its QEMU, an empty guest of 32 MiB | {} |",
        mebibytes(memory.idle as f64),
        mebibytes(memory.first as f64),
        mebibytes(memory.fairway),
        mebibytes(memory.beside),
        mebibytes(memory.qemu),
    );
    let many = &measured.many;
    let each = |time: Duration| number(Some(milliseconds(time) / many.count as f64));
    let _ = writeln!(
        text,
        "\n## {} machines that do not run\n\n| | ms in all | CPU ms each |\n|---|---|---|\n| created, one after the other | {} | |\n\
         | until each says that it is stopped | {} | {} |\n| listed ({} bytes) | {} | |\n| deleted, until none is left | {} | {} |\n\n\
         They take {} MiB of memory.",
        many.count,
        number(Some(milliseconds(many.created))),
        number(Some(milliseconds(many.settled))),
        each(many.cpu),
        many.list_bytes,
        number(Some(milliseconds(many.listed))),
        number(Some(milliseconds(many.deleted))),
        each(many.delete_cpu),
        mebibytes(many.memory as f64),
    );
    text
}

/// Medians of one side, in milliseconds.
struct Side {
    started: f64,
    login: f64,
    range: (f64, f64),
    qemu: f64,
    others: f64,
}

impl Side {
    fn of(boots: &[Boot]) -> Self {
        let logins: Vec<f64> = boots.iter().map(|boot| milliseconds(boot.login)).collect();
        Self {
            started: median(boots, |boot| boot.started),
            login: median(boots, |boot| boot.login),
            range: (
                logins.iter().copied().fold(f64::INFINITY, f64::min),
                logins.iter().copied().fold(0.0, f64::max),
            ),
            qemu: median(boots, |boot| boot.qemu),
            others: median(boots, |boot| boot.others),
        }
    }

    fn cpu(&self) -> f64 {
        self.qemu + self.others
    }
}

fn median(boots: &[Boot], of: impl Fn(&Boot) -> Duration) -> f64 {
    let mut values: Vec<f64> = boots.iter().map(|boot| milliseconds(of(boot))).collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}
