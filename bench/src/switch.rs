//! Frames through the userspace switch, beside what the machine can do at best: a loop that reads from the same kind of
//! socket and writes to another, and looks at nothing.
//!
//! A generator plays the QEMU of one guest, a sink that of another. The cores are shared, so the figure that counts is
//! the CPU time of the thread in the middle per frame, from which follows what it can do on a core of its own. QEMU
//! writes each frame by a call of its own, which makes reading dearer than a stream of large writes; both are measured,
//! and the floor holds for the former.

mod measured;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::report::{Circumstances, commit};
use measured::{Case, Middle, Passed};

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// For each case of a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where the report goes; without it, it is printed only.
    #[arg(long)]
    results: Option<PathBuf>,
}

/// On a core: either is enough.
const FLOOR_FRAMES: f64 = 300_000.0;
const FLOOR_GIGABITS: f64 = 2.0;

const CASES: [Case; 4] = [
    Case {
        frame: 1500,
        per_write: 1,
    },
    Case {
        frame: 64,
        per_write: 1,
    },
    Case {
        frame: 1500,
        per_write: 40,
    },
    Case {
        frame: 64,
        per_write: 900,
    },
];

pub(crate) async fn run(options: &Options) -> Result<()> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut rounds: BTreeMap<(usize, bool), Vec<Passed>> = BTreeMap::new();
    for _ in 0..options.rounds.max(1) {
        for (at, case) in CASES.iter().enumerate() {
            for (is_switch, middle) in [(true, Middle::Switch), (false, Middle::Copy)] {
                let passed = measured::run(*case, middle, time).await?;
                rounds.entry((at, is_switch)).or_default().push(passed);
            }
        }
    }
    let mut report = Circumstances::gather(options.rounds, 1.0).switch_heading();
    report.push_str(
        "\n| frames | written by | CPU ns per frame: switch | bare copy | on a core: frames/s | Gbit/s | bare copy: frames/s | Gbit/s | \
         delivered/s, shared cores | lost |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut is_met = true;
    for (at, case) in CASES.iter().enumerate() {
        let of = |is_switch: bool| median(rounds.get(&(at, is_switch)).map_or(&[], Vec::as_slice));
        let (switch, copy) = (of(true), of(false));
        let bytes = switch.lost_share * 100.0;
        writeln!(
            report,
            "| {} B | {} | {:.0} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} | {:.0} | {bytes:.1} % |",
            case.frame,
            if case.per_write == 1 {
                "one call each".to_owned()
            } else {
                format!("{} a call", case.per_write)
            },
            switch.cpu_per_frame,
            copy.cpu_per_frame,
            switch.frames_per_core(),
            switch.gigabits_per_core(*case),
            copy.frames_per_core(),
            copy.gigabits_per_core(*case),
            switch.delivered_per_second,
        )?;
        let enough =
            switch.frames_per_core() >= FLOOR_FRAMES || switch.gigabits_per_core(*case) >= FLOOR_GIGABITS;
        is_met &= enough;
    }
    writeln!(
        report,
        "\nFloor ({FLOOR_GIGABITS} Gbit/s or {FLOOR_FRAMES:.0} frames/s on a core) {}.",
        if is_met { "met" } else { "MISSED" }
    )?;
    println!("{report}");
    if let Some(directory) = &options.results {
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
        let path = directory.join(format!("switch-{date}-{}.md", commit()));
        fs::create_dir_all(directory)?;
        fs::write(&path, report).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The round in the middle, by CPU time.
fn median(rounds: &[Passed]) -> Passed {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(|a, b| a.cpu_per_frame.total_cmp(&b.cpu_per_frame));
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}
