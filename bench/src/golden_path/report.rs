//! The tables, and whether the floors hold.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Measured, Options};
use crate::figures::{median, milliseconds};
use crate::machines::report::{Side, sides};
use crate::report::{Circumstances, number};

/// Milliseconds of a run, by the clock and of CPU.
const RUN: f64 = 1_000.0;
const RUN_CPU: f64 = 300.0;
/// Milliseconds of a list of the catalog.
const LIST: f64 = 200.0;
/// A request with all realms, against one: what cannot be told from the noise of the machine.
const REALMS: f64 = 1.1;
/// A sign-in against one bare argon2id: nothing but the hash limits how many people can sign in, so the rest is small beside it.
const SIGN_IN: f64 = 1.3;
/// Milliseconds, and percent of CPU, that a form to a login takes more than booting the image by hand.
const LOGIN: f64 = 1_500.0;
const LOGIN_CPU: f64 = 5.0;
/// Megabytes and percent of a core of the platform at rest.
const RESIDENT: f64 = 150.0;
const SHARE: f64 = 1.0;

/// One promise, and what became of it.
struct Floor {
    what: String,
    at_most: f64,
    measured: f64,
}

pub(super) fn write(measured: &Measured, options: &Options) -> String {
    let mut text = Circumstances::gather(options.runs, 1.0).golden_path_heading();
    text += "\n## Floors\n\n| floor | measured | held |\n|---|---|---|\n";
    for floor in floors(measured) {
        let _ = writeln!(text, "{}", floor.row());
    }
    text += "\nRuns are of `virtual-machine` on a Fairway with `--no-machines`, from the request until the run has succeeded: repository and \
             Application are there, and the entity is registered; that the catalog finds it is waited for, and is a figure below. \
             CPU is that of Fairway and of the programs that it starts.\n";
    text += "\nThat sign-in is limited by argon2id alone is read as: the page, its form, code and tokens over TLS cost at most 0.3 of the \
             hash; the figures below have the rest by itself, and what both cores do in a second.\n";
    text += match measured.boots {
        Some(_) => {
            "\nFrom the form to the login is the path that people go: the order over the portal's API, the run, the sync out of Git, the boot of \
             `tiny`, a login over SSH. CPU is that of Fairway, QEMU and all that they start. By hand it is QEMU with the arguments and the seed \
             that Fairway gave it; `qemu-img`, which makes its disk, is not counted there.\n"
        }
        None => {
            "\nNot measured in this run: from a form to an SSH login, beside booting that image by hand.\n"
        }
    };
    figures(&mut text, measured);
    if let Some(boots) = &measured.boots {
        let heading = "\n## From the form to the login, `tiny`, the same QEMU arguments";
        let _ = writeln!(text, "{heading}, {} boots of each\n", boots.fairway.len());
        text += &sides(&Side::of(&boots.fairway), &Side::of(&boots.by_hand));
    }
    text
}

impl Floor {
    fn row(&self) -> String {
        let held = if self.measured <= self.at_most {
            "yes"
        } else {
            "NO"
        };
        format!(
            "| {}: at most {} | {} | {held} |",
            self.what,
            self.at_most,
            number(Some(self.measured))
        )
    }
}

fn floors(measured: &Measured) -> Vec<Floor> {
    let Measured {
        runs,
        entities,
        realms,
        sign_ins,
        idle,
        ..
    } = measured;
    let floor = |what: &str, at_most: f64, measured: f64| Floor {
        what: what.to_owned(),
        at_most,
        measured,
    };
    let sign_in = median(sign_ins.iter().map(|it| ratio(it.cpu, it.bare_cpu)).collect());
    let mut all = vec![
        floor("ms of a run", RUN, of(runs.iter().map(|run| run.wall))),
        floor(
            "CPU ms of a run until it had succeeded",
            RUN_CPU,
            of(runs.iter().map(|run| run.cpu)),
        ),
        floor(
            "CPU ms of a run with the sync of its Application, until nothing was left to do, on average",
            RUN_CPU,
            milliseconds(measured.settled),
        ),
        floor(
            &format!("ms of a list of {} entities", entities.count),
            LIST,
            of(entities.wall.iter().copied()),
        ),
        floor(
            &format!("CPU of a request with {} realms, against one realm", realms.count),
            REALMS,
            realms.ratio,
        ),
        floor(
            "CPU of a sign-in, against one bare argon2id of the same cost",
            SIGN_IN,
            sign_in,
        ),
        floor(
            "MB resident, the whole platform idle",
            RESIDENT,
            idle.resident as f64 / 1e6,
        ),
        floor("% of a core, the whole platform idle", SHARE, idle.share),
    ];
    if let Some(boots) = &measured.boots {
        let (ours, hand) = (Side::of(&boots.fairway), Side::of(&boots.by_hand));
        all.push(floor(
            "ms that a form to a login takes longer than booting the image by hand",
            LOGIN,
            ours.login - hand.login,
        ));
        all.push(floor(
            "% of CPU that a form to a login takes more than booting the image by hand",
            LOGIN_CPU,
            (ours.cpu() / hand.cpu() - 1.0) * 100.0,
        ));
    }
    all
}

fn figures(text: &mut String, measured: &Measured) {
    let Measured {
        runs,
        entities,
        realms,
        sign_ins,
        filled,
        ..
    } = measured;
    *text += "\n## Figures\n\n| what | |\n|---|---|\n";
    let mut row = |what: &str, value: f64| {
        let _ = writeln!(text, "| {what} | {} |", number(Some(value)));
    };
    let slowest = runs.iter().map(|run| milliseconds(run.wall)).fold(0.0, f64::max);
    row("the slowest run, ms", slowest);
    row(
        "ms of a run until its entity was found in the catalog, too",
        of(runs.iter().map(|run| run.listed)),
    );
    row("CPU ms of a list", of(entities.cpu.iter().copied()));
    row("MB of a list", entities.bytes as f64 / 1e6);
    row(
        "s from the first push until all entities were there",
        entities.arrived.as_secs_f64(),
    );
    row("CPU ms of a request, one realm", realms.one_ms);
    row(
        &format!("CPU ms of a request, {} realms", realms.count),
        realms.many_ms,
    );
    row("CPU ms of a realm with a user, until settled", realms.creation_ms);
    row("MB resident with one realm", realms.megabytes.0);
    row(
        &format!("MB resident with {} realms, just made", realms.count),
        realms.megabytes.1,
    );
    row(
        &format!("MB resident, idle, with what {} runs have made", runs.len() + 1),
        filled.resident as f64 / 1e6,
    );
    row("% of a core, idle, with the same", filled.share);
    if let Some(boots) = &measured.boots {
        let made = "idle, machines on, after boots, with a published machine that is switched off";
        row(
            &format!("MB resident, {made}"),
            boots.stopped.resident as f64 / 1e6,
        );
        row(&format!("% of a core, {made}"), boots.stopped.share);
    }
    let rates = &measured.rates;
    row(
        &format!("sign-ins in a second, {} at a time", rates.cores),
        rates.sign_ins,
    );
    row(
        &format!("bare argon2id in a second, {} threads", rates.cores),
        rates.bare,
    );
    *text += "\n| sign-in, medians | ms | CPU ms |\n|---|---|---|\n";
    let mut row = |what: &str, wall: f64, cpu: f64| {
        let _ = writeln!(
            text,
            "| {what} | {} | {} |",
            number(Some(wall)),
            number(Some(cpu))
        );
    };
    row(
        "the page, its form, tokens",
        of(sign_ins.iter().map(|it| it.wall)),
        of(sign_ins.iter().map(|it| it.cpu)),
    );
    row(
        "one bare argon2id",
        of(sign_ins.iter().map(|it| it.bare_wall)),
        of(sign_ins.iter().map(|it| it.bare_cpu)),
    );
    row(
        "the rest, of each pair",
        median(sign_ins.iter().map(|it| rest(it.wall, it.bare_wall)).collect()),
        median(sign_ins.iter().map(|it| rest(it.cpu, it.bare_cpu)).collect()),
    );
    row(
        "ratio, of each pair",
        median(sign_ins.iter().map(|it| ratio(it.wall, it.bare_wall)).collect()),
        median(sign_ins.iter().map(|it| ratio(it.cpu, it.bare_cpu)).collect()),
    );
}

fn ratio(above: Duration, below: Duration) -> f64 {
    above.as_secs_f64() / below.as_secs_f64()
}

/// What is left of a whole without its part, in milliseconds; below nothing if the part took longer by itself.
fn rest(whole: Duration, part: Duration) -> f64 {
    milliseconds(whole) - milliseconds(part)
}

/// The median, in milliseconds.
fn of(times: impl Iterator<Item = Duration>) -> f64 {
    median(times.map(milliseconds).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_held_up_to_its_limit_and_never_without_a_figure() {
        for (measured, held) in [(1.0, "yes"), (1.01, "NO"), (f64::NAN, "NO")] {
            let floor = Floor {
                what: "x".to_owned(),
                at_most: 1.0,
                measured,
            };
            assert!(floor.row().ends_with(&format!("| {held} |")), "{measured}");
        }
    }
}
