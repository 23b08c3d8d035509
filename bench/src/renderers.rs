//! Renderers: Fairway's kustomize beside the real one, on the same directories.
//!
//! CPU time counts, of the whole command and, for Fairway, of one build within a process that goes on: that is what a
//! GitOps engine pays. The outputs are compared before anything is measured.

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

use crate::report::{Circumstances, commit};

/// Files of a directory: path and content.
type Files = Vec<(String, String)>;

#[derive(Args)]
pub(crate) struct Options {
    /// The real kustomize (scripts/peers.sh builds it).
    #[arg(long, default_value = ".tools/bin/kustomize")]
    kustomize: PathBuf,
    /// The example `build` of the kustomize crate: reads a directory, builds it, prints YAML.
    #[arg(long, default_value = "target/release/examples/build")]
    ours: PathBuf,
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
    original: Option<Duration>,
    command: Duration,
    in_process: Duration,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut report = Circumstances::gather(options.rounds, 1.0).renderers_heading();
    report += "\n| case | kustomize, CPU | Fairway, command | ratio | Fairway, in process | ratio | floor |\n|---|---|---|---|---|---|---|\n";
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
        let median = |part: fn(&Figures) -> Option<Duration>| {
            let mut all: Vec<Duration> = rounds.iter().filter_map(part).collect();
            all.sort();
            all.get(all.len() / 2).copied()
        };
        let command = median(|figures| Some(figures.command)).unwrap_or_default();
        let in_process = median(|figures| Some(figures.in_process)).unwrap_or_default();
        let original = median(|figures| figures.original);
        let ratio =
            |ours: Duration| original.map(|original| original.as_secs_f64() / ours.as_secs_f64().max(1e-9));
        let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.0}×"));
        if ratio(command).is_some_and(|ratio| ratio < case.floor) {
            below.push(case.name);
        }
        writeln!(
            report,
            "| {} | {} | {} | {} | {} | {} | {}× |",
            case.name,
            original.map_or("–".to_owned(), milliseconds),
            milliseconds(command),
            shown(ratio(command)),
            milliseconds(in_process),
            shown(ratio(in_process)),
            case.floor
        )?;
    }
    report += &growth::table(options.rounds)?;
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
    let spent = |repeat: u32, run: &mut dyn FnMut() -> Result<()>| -> Result<Duration> {
        let before = cpu()?;
        for _ in 0..repeat {
            run()?;
        }
        Ok((cpu()? - before) / repeat.max(1))
    };
    let original = match case.repeat {
        0 => None,
        repeat => Some(spent(repeat, &mut || original(options, directory).map(drop))?),
    };
    Ok(Figures {
        original,
        command: spent(case.repeat_ours, &mut || ours(options, directory).map(drop))?,
        in_process: spent(case.repeat_ours, &mut || in_process(tree).map(drop))?,
    })
}

/// User and system time of this process and of its children that have ended.
fn cpu() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has no name")?;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(ticks * 10))
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
    output(Command::new(&options.ours).arg(directory).arg("overlay"))
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
