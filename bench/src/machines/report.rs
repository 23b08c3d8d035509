//! The tables, and whether the floors hold.

use std::fmt::Write as _;
use std::time::Duration;

use super::boot::Boot;
use super::{Boots, Measured, many, memory, migration, throughput};
use crate::figures::{self, milliseconds};
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
    let rounds = measured.tiny.fairway.len();
    let mut text = Circumstances::gather(rounds, 1.0).machines_heading();
    let (ours, hand) = (Side::of(&measured.tiny.fairway), Side::of(&measured.tiny.by_hand));
    let more = (ours.cpu() / hand.cpu() - 1.0) * 100.0;
    let each = (measured.memory.fairway + measured.memory.beside) / MEBIBYTE;
    let mut floors = vec![
        (
            "ms from apply until QEMU was started".to_owned(),
            STARTED,
            ours.started,
        ),
        (
            "ms that apply to login takes longer than by hand".to_owned(),
            LONGER,
            ours.login - hand.login,
        ),
        (
            "% of CPU time that a boot takes more than by hand".to_owned(),
            MORE,
            more,
        ),
        (
            "MiB of a running machine beside its QEMU".to_owned(),
            MEMORY,
            each,
        ),
        (
            "MiB of a running machine beside its QEMU, on a node that has joined".to_owned(),
            MEMORY,
            (measured.joined.node + measured.joined.supervisor) / MEBIBYTE,
        ),
    ];
    if let Some(debian) = &measured.debian {
        let (ours, hand) = (Side::of(&debian.fairway), Side::of(&debian.by_hand));
        floors.push((
            "ms that apply to login takes longer than by hand, `debian`".to_owned(),
            LONGER,
            ours.login - hand.login,
        ));
    }
    text += "\n## Floors\n\n| floor | measured | held |\n|---|---|---|\n";
    for (what, at_most, value) in floors {
        let held = if value <= at_most { "yes" } else { "NO" };
        let _ = writeln!(
            text,
            "| {what}: at most {at_most} | {} | {held} |",
            number(Some(value))
        );
    }
    text += &boots(&measured.tiny);
    text += &measured.debian.as_ref().map(boots).unwrap_or_default();
    text += &memory(&measured.memory, &measured.joined);
    text += &many(&measured.many);
    text += &measured.moves.as_ref().map(moves).unwrap_or_default();
    text += &throughput(&measured.throughput);
    text
}

fn boots(boots: &Boots) -> String {
    let heading = format!(
        "\n## From apply to login, `{}`, the same QEMU arguments, {} boots of each\n\n",
        boots.guest.image,
        boots.fairway.len()
    );
    heading + &sides(&Side::of(&boots.fairway), &Side::of(&boots.by_hand))
}

/// Both sides beside each other.
pub(crate) fn sides(ours: &Side, hand: &Side) -> String {
    let mut text = String::from(
        "| | until QEMU, ms | until login, ms (min–max) | CPU of QEMU, ms | CPU of others, ms |\n|---|---|---|---|---|\n",
    );
    for (name, side) in [("Fairway", ours), ("by hand", hand)] {
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
    text
}

fn mebibytes(bytes: f64) -> String {
    number(Some(bytes / MEBIBYTE))
}

fn memory(memory: &memory::Each, joined: &memory::Joined) -> String {
    format!(
        "\n## Memory\n\n| | MiB |\n|---|---|\n| Fairway without machines | {} |\n| with the first one | {} |\n| each further one, in Fairway | {} |\n\
         | each, in processes beside its QEMU | {} |\n| its QEMU, an empty guest of 32 MiB | {} |\n\
         | on a node that has joined: each further one, in the node's process | {} |\n\
         | each, in the supervisor over its QEMU, what no other process has | {} |\n",
        mebibytes(memory.idle as f64),
        mebibytes(memory.first as f64),
        mebibytes(memory.fairway),
        mebibytes(memory.beside),
        mebibytes(memory.qemu),
        mebibytes(joined.node),
        mebibytes(joined.supervisor),
    )
}

fn many(many: &many::Many) -> String {
    let kinds = many.kinds;
    let each = |time: Duration| number(Some(milliseconds(time) / kinds.count as f64));
    format!(
        "\n## {} machines, of which {} run and {} are paused\n\n| | ms in all | CPU ms each |\n|---|---|---|\n| created, one after the other | {} | |\n\
         | until each is what it is to be | {} | {} |\n| listed ({} bytes) | {} | |\n| deleted, until none is left | {} | {} |\n\n\
         Fairway takes {} MiB of memory more with them.\n",
        kinds.count,
        kinds.running,
        kinds.paused,
        number(Some(milliseconds(many.created))),
        number(Some(milliseconds(many.settled))),
        each(many.cpu),
        many.list_bytes,
        number(Some(milliseconds(many.listed))),
        number(Some(milliseconds(many.deleted))),
        each(many.delete_cpu),
        mebibytes(many.memory as f64),
    )
}

fn moves(moves: &migration::Moves) -> String {
    let mut text = format!(
        "\n## Migration of `tiny` with its disk, {} of each\n\n\
         Two nodes of this host, and two QEMUs by hand with the same arguments and parameters. Where machines have users of their own, \
         Fairway's go over TLS; by hand it is a bare socket.\n\n\
         | | in all, ms | of that, sending memory, ms | the guest stood still, ms (min–max) |\n|---|---|---|---|\n",
        moves.fairway.len()
    );
    for (name, side) in [("Fairway", &moves.fairway), ("by hand", &moves.by_hand)] {
        let still: Vec<f64> = side.iter().map(|it| milliseconds(it.downtime)).collect();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} ({}–{}) |",
            number(Some(median(side, |it| it.total))),
            number(Some(median(side, |it| it.memory))),
            number(Some(median(side, |it| it.downtime))),
            number(Some(still.iter().copied().fold(f64::INFINITY, f64::min))),
            number(Some(still.iter().copied().fold(0.0, f64::max))),
        );
    }
    text
}

fn throughput(ways: &[throughput::Way]) -> String {
    if ways.is_empty() {
        return String::new();
    }
    let mut text = "\n## iperf3 in a guest, Mbit/s, medians of three runs\n\n\
         | | host to guest | guest to host | guest to guest |\n|---|---|---|---|\n"
        .to_owned();
    for way in ways {
        let _ = match &way.rates {
            Ok(rates) => writeln!(
                text,
                "| {} | {} | {} | {} |",
                way.name,
                number(rates.in_),
                number(rates.out),
                number(rates.between)
            ),
            Err(why) => writeln!(text, "| {} | not measured: {why} | | |", way.name),
        };
    }
    text
}

/// Medians of one side, in milliseconds.
pub(crate) struct Side {
    pub(crate) started: f64,
    pub(crate) login: f64,
    pub(crate) range: (f64, f64),
    pub(crate) qemu: f64,
    pub(crate) others: f64,
}

impl Side {
    pub(crate) fn of(boots: &[Boot]) -> Self {
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

    pub(crate) fn cpu(&self) -> f64 {
        self.qemu + self.others
    }
}

fn median<T>(all: &[T], of: impl Fn(&T) -> Duration) -> f64 {
    figures::median(all.iter().map(|it| milliseconds(of(it))).collect())
}
