//! `template CHART [--name NAME] [--namespace NS] [--values FILE]... [--set LINE]... [--set-string LINE]... [--set-json LINE]...
//! [--set-literal LINE]... [--include-crds] [--repeat N] [--stats]`: what `helm template` prints, from a directory or a `.tgz` on
//! disk. For comparisons with Helm; users have `fairway render`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fairway_gitops_helm::{
    Capabilities, Chart, Offline, Options, Output, Reading, Release, ValuesBuilder, render,
};
use fairway_gitops_tree::{Tree, TreeBuilder};

fn add(builder: &mut TreeBuilder, folder: &Path, prefix: &str) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}/{name}")
        };
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        if kind.is_dir() {
            add(builder, &entry.path(), &path)?;
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).map_err(|error| error.to_string())?;
            builder
                .link(&path, &target.to_string_lossy())
                .map_err(|error| error.to_string())?;
        } else {
            let data = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
            builder.file(&path, data).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn run() -> Result<String, String> {
    let mut release = Release::default();
    let mut values = ValuesBuilder::new();
    let mut output = Output::default();
    let mut repeat = 1;
    let mut stats = false;
    let mut chart = None;
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--name" => release.name = next()?,
            "--namespace" => release.namespace = next()?,
            "--values" => {
                let file = next()?;
                let text = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
                values.file(&file, &text).map_err(|error| error.to_string())?;
            }
            flag @ ("--set" | "--set-string" | "--set-json" | "--set-literal") => {
                lines.push((flag.to_owned(), next()?));
            }
            "--include-crds" => output.crds = true,
            "--stats" => stats = true,
            "--repeat" => repeat = next()?.parse().map_err(|_| "--repeat needs a number")?,
            _ => chart = Some(argument),
        }
    }
    // Helm's order, whatever that of the arguments is.
    for flag in ["--set-json", "--set", "--set-string", "--set-literal"] {
        for (_, line) in lines.iter().filter(|(given, _)| given == flag) {
            match flag {
                "--set-json" => values.set_json(line),
                "--set" => values.set(line),
                "--set-string" => values.set_string(line),
                _ => values.set_literal(line),
            }
            .map_err(|error| error.to_string())?;
        }
    }
    let chart = chart.ok_or("usage: template CHART [--values FILE]...")?;
    let mut clock = Instant::now();
    let mut lap = |what: &str| {
        if stats {
            eprintln!("{what}: {:?}", clock.elapsed());
        }
        clock = Instant::now();
    };
    let mut builder = Tree::builder();
    let path = Path::new(&chart);
    let name = match path.is_dir() {
        true => {
            add(&mut builder, path, "chart")?;
            "chart"
        }
        false => {
            let data = std::fs::read(path).map_err(|error| format!("{chart}: {error}"))?;
            builder
                .file("chart.tgz", data)
                .map_err(|error| error.to_string())?;
            "chart.tgz"
        }
    };
    let tree = builder.build();
    lap("files");
    let loaded = Chart::load(&tree.reader(), name).map_err(|error| error.to_string())?;
    lap("chart");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|error| error.to_string())?;
    let environment = Offline::new(now.as_nanos() as i128, now.as_nanos() as u64);
    let values = values.build();
    let mut text = String::new();
    for _ in 0..repeat {
        let rendered = render(
            &loaded,
            &values,
            &release,
            &Capabilities::default(),
            &Options {
                crds: output.crds,
                reading: Reading::Head,
                ..Options::default()
            },
            &environment,
        )
        .map_err(|error| error.to_string())?;
        lap("render");
        text = rendered.to_yaml(output);
        lap("text");
    }
    Ok(text)
}

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}
