//! A repository of 1,000 applications rendered in full, and again after commits of one file.
//!
//! What a commit costs is everything that a GitOps engine pays in this process from the changed file to the new
//! results: the new tree, finding out which applications it touches, rendering them, noting what they depend on. Before
//! anything is measured, the results that were kept after a commit are compared with those of a new render of everything.

mod repository;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use fairway_gitops_helm::Offline;
use fairway_gitops_render::{Dependents, Params, Ports, attempt};
use fairway_gitops_tree::{Change, Tree};

use crate::process::cpu_time;
use crate::report::{Circumstances, commit};
use repository::{Application, Commit, repository};

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 1_000)]
    applications: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many commits of each kind in a round.
    #[arg(long, default_value_t = 100)]
    commits: u32,
    /// Where the report goes; without it, it is printed only.
    #[arg(long)]
    results: Option<PathBuf>,
}

/// A commit that touches at most one application costs at most this part of rendering everything.
const FLOOR: f64 = 100.0;

/// An engine's memory: the tree, what became of each application, and what that depends on.
struct Engine<'a> {
    applications: &'a [Application],
    tree: Tree,
    results: Vec<String>,
    dependents: Dependents<usize>,
}

impl<'a> Engine<'a> {
    /// Renders everything.
    fn start(applications: &'a [Application], tree: Tree) -> Result<Self> {
        let mut engine = Self {
            applications,
            tree,
            results: vec![String::new(); applications.len()],
            dependents: Dependents::default(),
        };
        for at in 0..applications.len() {
            engine.render(at)?;
        }
        Ok(engine)
    }

    fn render(&mut self, at: usize) -> Result<()> {
        let application = &self.applications[at];
        let params = Params {
            env: Some(application.variables.clone()),
            helm: application.helm.clone(),
            ..Params::default()
        };
        let offline = Offline::default();
        let ports = Ports {
            environment: &offline,
            fetcher: None,
        };
        let rendered = attempt(&self.tree, &application.directory, None, &params, ports)
            .map_err(|failure| anyhow!(failure.error))
            .with_context(|| application.directory.clone())?;
        self.results[at] = rendered.text;
        self.dependents.insert(at, rendered.inputs);
        Ok(())
    }

    /// Takes in a commit of one file; tells how many applications it touched.
    fn commit(&mut self, path: &str, text: &str) -> Result<usize> {
        let new = self
            .tree
            .changed([(path, Change::File(text.as_bytes().into()))])?;
        let touched: Vec<usize> = self
            .dependents
            .touched([path], &self.tree, &new)
            .into_iter()
            .copied()
            .collect();
        self.tree = new;
        for at in &touched {
            self.render(*at)?;
        }
        Ok(touched.len())
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (files, applications, commits) = repository(options.applications);
    let tree = || Tree::of(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())));
    let mut full = Vec::new();
    let mut by_commit: BTreeMap<usize, Vec<(Duration, usize)>> = BTreeMap::new();
    check(&applications, &commits, tree()?)?;
    for _ in 0..options.rounds.max(1) {
        let before = cpu()?;
        // As after a restart: the tree, too, is new.
        let mut engine = Engine::start(&applications, tree()?)?;
        full.push(cpu()? - before);
        for (at, commit) in commits.iter().enumerate() {
            let before = cpu()?;
            let mut touched = 0;
            for number in 0..options.commits.max(1) {
                // Each differs from the one before.
                touched = engine.commit(&commit.path, &(commit.text)(number))?;
            }
            let each = (cpu()? - before) / options.commits.max(1);
            by_commit.entry(at).or_default().push((each, touched));
        }
    }
    full.sort();
    let full = full[full.len() / 2];
    let mut report = Circumstances::gather(options.rounds, 1.0).rerender_heading();
    writeln!(
        report,
        "\n{} applications in {} files: {} of CPU for all of them.\n",
        applications.len(),
        files.len(),
        milliseconds(full)
    )?;
    report +=
        "| one changed file | applications made again | CPU | part of all | floor |\n|---|---|---|---|---|\n";
    let mut below = Vec::new();
    for (at, mut rounds) in by_commit {
        rounds.sort();
        let (each, touched) = rounds[rounds.len() / 2];
        let part = full.as_secs_f64() / each.as_secs_f64().max(1e-9);
        let is_judged = touched <= 1;
        if is_judged && part < FLOOR {
            below.push(commits[at].name);
        }
        writeln!(
            report,
            "| {} | {touched} | {} | 1/{part:.0} | {} |",
            commits[at].name,
            milliseconds(each),
            if is_judged {
                format!("1/{FLOOR}")
            } else {
                "–".to_owned()
            }
        )?;
    }
    print!("{report}");
    if let Some(results) = &options.results {
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
        let file = results.join(format!("rerender-{date}-{}.md", commit()));
        fs::write(&file, &report).with_context(|| format!("writing {}", file.display()))?;
        println!("\nwritten to {}", file.display());
    }
    if !below.is_empty() {
        bail!("below their floors: {}", below.join(", "));
    }
    Ok(())
}

/// What is kept after a commit must be what a new render of everything gives.
fn check(applications: &[Application], commits: &[Commit], tree: Tree) -> Result<()> {
    let mut engine = Engine::start(applications, tree)?;
    for commit in commits {
        let before = engine.results.clone();
        let touched = engine.commit(&commit.path, &(commit.text)(0))?;
        let anew = Engine::start(applications, engine.tree.clone())?;
        if anew.results != engine.results {
            bail!("{}: what was kept is not what is rendered now", commit.name);
        }
        let differ = before.iter().zip(&engine.results).filter(|(a, b)| a != b).count();
        if (differ, touched) != (commit.touches, commit.touches) {
            bail!(
                "{}: {touched} applications made again, {differ} changed, {} expected",
                commit.name,
                commit.touches
            );
        }
    }
    Ok(())
}

fn cpu() -> Result<Duration> {
    cpu_time(std::process::id())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_repository_is_kept_up_to_date() {
        let (files, applications, commits) = repository(40);
        let tree = Tree::of(files.iter().map(|(path, text)| (path.as_str(), text.as_bytes()))).unwrap();
        check(&applications, &commits, tree).unwrap();
    }
}
