//! Renderers: Fairway's kustomize and Helm beside the real ones, on the same directories.
//!
//! CPU time counts, of the whole command and, for Fairway, of one build within a process that goes on: that is what a
//! GitOps engine pays. Beside it stands the peak of memory. The outputs are compared before anything is measured.

mod charts;
pub(crate) mod measured;

mod growth;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use fairway_gitops_kustomize::{Options as BuildOptions, Ports, build};
use fairway_gitops_tree::Tree;

use self::charts::megabytes;
use self::measured::{Cost, cost, median};
use crate::process::cpu_time;
use crate::report::{Circumstances, commit};

/// Files of a directory: path and content.
type Files = Vec<(String, String)>;

#[derive(Args)]
pub(crate) struct Options {
    /// The real kustomize (scripts/peers.sh builds it).
    #[arg(long, default_value = ".tools/bin/kustomize")]
    kustomize: PathBuf,
    /// The real helm.
    #[arg(long, default_value = ".tools/bin/helm")]
    helm: PathBuf,
    /// The Fairway binary to measure.
    #[arg(long, default_value = "target/release/fairway")]
    fairway: PathBuf,
    /// A chart to render, beside the one that is made up here; as often as wanted.
    #[arg(long = "chart", value_name = "NAME=DIRECTORY")]
    charts: Vec<String>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where the report goes; without it, it is printed only.
    #[arg(long)]
    results: Option<PathBuf>,
}

/// What is promised of a case: how many times less CPU than the original.
struct Case {
    name: &'static str,
    resources: usize,
    floor: f64,
    repeat: u32,
    repeat_ours: u32,
}

const CASES: [Case; 4] = [
    Case {
        name: "overlay of one Deployment",
        resources: 1,
        floor: 1.0,
        repeat: 20,
        repeat_ours: 200,
    },
    Case {
        name: "100 resources",
        resources: 100,
        floor: 20.0,
        repeat: 5,
        repeat_ours: 100,
    },
    Case {
        name: "1,000 resources",
        resources: 1_000,
        floor: 50.0,
        repeat: 1,
        repeat_ours: 20,
    },
    Case {
        name: "4,000 resources",
        resources: 4_000,
        floor: 50.0,
        repeat: 0,
        repeat_ours: 5,
    },
];

/// CPU time per build of a case: of the original, of our command, of a build in process.
#[derive(Clone, Copy)]
struct Figures {
    original: Option<Cost>,
    command: Cost,
    in_process: Duration,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut report = Circumstances::gather(options.rounds, 1.0).renderers_heading();
    report += "\n| kustomization | kustomize, CPU | Fairway, command | ratio | in process | ratio | floor | kustomize, peak | Fairway, peak | part |\n|---|---|---|---|---|---|---|---|---|---|\n";
    let mut below = Vec::new();
    for case in &CASES {
        let files = growth::files(growth::Shape::Overlay, case.resources);
        let directory = scratch.path().join(case.resources.to_string());
        write(&directory, &files)?;
        let tree = Tree::of(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())))?;
        if case.repeat > 0 {
            compare(options, &directory, &tree).context(case.name)?;
        }
        let mut rounds = Vec::new();
        for _ in 0..options.rounds.max(1) {
            rounds.push(measure(options, case, &directory, &tree)?);
        }
        let figure =
            |part: fn(&Figures) -> Option<Duration>| median(rounds.iter().filter_map(part).collect());
        let peak = |part: fn(&Figures) -> Option<u64>| median(rounds.iter().filter_map(part).collect());
        let command = figure(|figures| Some(figures.command.cpu)).unwrap_or_default();
        let in_process = figure(|figures| Some(figures.in_process)).unwrap_or_default();
        let original = figure(|figures| figures.original.map(|cost| cost.cpu));
        let ratio =
            |ours: Duration| original.map(|original| original.as_secs_f64() / ours.as_secs_f64().max(1e-9));
        let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.0}×"));
        let peak_original = peak(|figures| figures.original.map(|cost| cost.peak));
        let peak_ours = peak(|figures| Some(figures.command.peak)).unwrap_or_default();
        let part = peak_original.map(|original| peak_ours as f64 / original as f64);
        if ratio(command).is_some_and(|ratio| ratio < case.floor) || part.is_some_and(|part| part > 1.0 / 3.0)
        {
            below.push(case.name.to_owned());
        }
        writeln!(
            report,
            "| {} | {} | {} | {} | {} | {} | {}× | {} | {} | {} |",
            case.name,
            original.map_or("–".to_owned(), milliseconds),
            milliseconds(command),
            shown(ratio(command)),
            milliseconds(in_process),
            shown(ratio(in_process)),
            case.floor,
            peak_original.map_or("–".to_owned(), megabytes),
            megabytes(peak_ours),
            part.map_or("–".to_owned(), |part| format!("{part:.2}")),
        )?;
    }
    report += &growth::table(options.rounds)?;
    let (table, missed) = charts::table(options, scratch.path())?;
    report += &table;
    below.extend(missed);
    print!("{report}");
    if let Some(results) = &options.results {
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
        let file = results.join(format!("renderers-{date}-{}.md", commit()));
        fs::write(&file, &report).with_context(|| format!("writing {}", file.display()))?;
        println!("\nwritten to {}", file.display());
    }
    if !below.is_empty() {
        bail!("below their floors: {}", below.join(", "));
    }
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn measure(options: &Options, case: &Case, directory: &Path, tree: &Tree) -> Result<Figures> {
    let overlay = directory.join("overlay");
    let overlay = overlay.to_str().context("a path that is not UTF-8")?;
    let root = directory.to_str().context("a path that is not UTF-8")?;
    let original = match case.repeat {
        0 => None,
        repeat => Some(cost(&options.kustomize, &["build", overlay], repeat)?),
    };
    let command = cost(
        &options.fairway,
        &["render", overlay, "--root", root],
        case.repeat_ours,
    )?;
    let own = std::process::id();
    let before = cpu_time(own)?;
    for _ in 0..case.repeat_ours {
        in_process(tree)?;
    }
    Ok(Figures {
        original,
        command,
        in_process: (cpu_time(own)? - before) / case.repeat_ours,
    })
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn original(options: &Options, directory: &Path) -> Result<String> {
    output(
        Command::new(&options.kustomize)
            .arg("build")
            .arg(directory.join("overlay")),
    )
}

fn ours(options: &Options, directory: &Path) -> Result<String> {
    output(
        Command::new(&options.fairway)
            .arg("render")
            .arg(directory.join("overlay"))
            .arg("--root")
            .arg(directory),
    )
}

fn in_process(tree: &Tree) -> Result<String> {
    Ok(build(
        &tree.reader(),
        "overlay",
        &BuildOptions::default(),
        Ports::default(),
    )?
    .to_yaml()?)
}

fn compare(options: &Options, directory: &Path, tree: &Tree) -> Result<()> {
    let expected = original(options, directory)?;
    if ours(options, directory)? != expected || in_process(tree)? != expected {
        bail!("the outputs differ");
    }
    Ok(())
}

fn write(directory: &Path, files: &Files) -> Result<()> {
    for (path, text) in files {
        let file = directory.join(path);
        fs::create_dir_all(file.parent().context("a file has a directory")?)?;
        fs::write(&file, text)?;
    }
    Ok(())
}
