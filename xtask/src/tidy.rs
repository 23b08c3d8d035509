//! `cargo xtask tidy`: the promises of the architecture as checks, so that they hold without anyone remembering them.
//!
//! Each check reads the workspace as Cargo describes it or the source files, and returns problems; none changes a file.
//! The same function runs as a test, so `cargo test` alone catches an untidy change. `--lock` records the hashes of
//! generated files.

mod attributes;
mod files;
mod generated;
mod layers;
mod lock;
mod purity;
mod source;
mod workspace;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::source::SourceFile;
use self::workspace::Workspace;

/// Something that breaks a promise, where it is, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// Relative to the repository's root.
    path: PathBuf,
    /// Zero when the whole file or crate is meant.
    line: usize,
    message: String,
}

impl Problem {
    fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path.display(), self.message)
        } else {
            write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
        }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let root = repository_root()?;
    match arguments {
        [] => report(&root),
        [option, new @ ..] if option == "--lock" => {
            println!("{}: {} files", lock::LOCK, lock::record(&root, new)?);
            Ok(())
        }
        _ => bail!("usage: cargo xtask tidy [--lock [PATH...]]"),
    }
}

fn report(root: &Path) -> Result<()> {
    let (summary, problems) = check_repository(root)?;
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} untidy places", problems.len());
    }
    println!("tidy: {summary}");
    Ok(())
}

fn repository_root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(xtask
        .parent()
        .context("xtask lies in the repository")?
        .to_path_buf())
}

/// What was looked at, and every problem found, in a stable order.
fn check_repository(root: &Path) -> Result<(String, Vec<Problem>)> {
    let workspace = Workspace::load(root)?;
    let sources = SourceFile::load_all(root)?;

    let mut problems = Vec::new();
    problems.extend(layers::check(&workspace));
    problems.extend(purity::check_dependencies(&workspace));
    problems.extend(check_manifests(&workspace)?);
    problems.extend(check_architecture_document(&workspace)?);
    for file in &sources {
        problems.extend(files::check(file));
        problems.extend(attributes::check(file));
        if workspace.crate_of(&file.path).is_some_and(|member| member.pure) {
            problems.extend(purity::check_source(file));
        }
    }
    let generated = generated::check(root, &sources)?;
    problems.extend(generated.problems);
    problems.sort();

    let pure = workspace.crates.iter().filter(|member| member.pure).count();
    let summary = format!(
        "{} crates ({pure} pure), {} source files, {}",
        workspace.crates.len(),
        sources.len(),
        generated.summary
    );
    Ok((summary, problems))
}

/// The crates that may have unsafe code, which the workspace's lints forbid.
const UNSAFE: [&str; 2] = ["crates/memory", "crates/machines/tap"];

/// Every crate says whether it is pure, and takes the workspace's lints.
fn check_manifests(workspace: &Workspace) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for member in &workspace.crates {
        let manifest = member.directory.join("Cargo.toml");
        if !member.declares_purity {
            problems.push(Problem::new(
                &manifest,
                0,
                "say whether the crate is pure: `[package.metadata.fairway]` with `pure = true` or `false`",
            ));
        }
        let path = workspace.root.join(&manifest);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let takes_lints = text.split("[lints]").nth(1).is_some_and(|section| {
            section
                .lines()
                .take(3)
                .any(|line| line.trim() == "workspace = true")
        });
        let may_be_unsafe = UNSAFE.iter().any(|it| member.directory == Path::new(it));
        if !takes_lints && !may_be_unsafe {
            problems.push(Problem::new(
                &manifest,
                0,
                "take the workspace's lints: `[lints]` with `workspace = true`",
            ));
        }
    }
    Ok(problems)
}

/// A crate without its paragraph in ARCHITECTURE.md has no written promise that a reader could hold it to.
fn check_architecture_document(workspace: &Workspace) -> Result<Vec<Problem>> {
    let path = workspace.root.join("ARCHITECTURE.md");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).context("cannot read ARCHITECTURE.md")?;
    let unnamed = workspace.crates.iter().filter(|member| {
        let folder = member.directory.to_string_lossy();
        let short = folder.strip_prefix("crates/").unwrap_or(&folder);
        let names = [short, &*folder, member.name.as_str()];
        names.iter().all(|name| !text.contains(&format!("`{name}`")))
    });
    Ok(unnamed
        .map(|member| {
            Problem::new(
                "ARCHITECTURE.md",
                0,
                format!("no paragraph names the crate `{}`", member.name),
            )
        })
        .collect())
}
