//! `fairway render`: what a directory of a repository comes to.

mod disk;
mod original;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use fairway_gitops_helm::{Environment, Release};
use fairway_gitops_kustomize as kustomize;
use fairway_gitops_render::{
    Dialect, DirectorySource, HelmSource, Params, Ports, Rendered, ValuesFile, render, variables,
};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

use crate::cli::render::{Format, Order, Render};

/// Runs the command.
pub(crate) fn run(options: &Render) -> anyhow::Result<ExitCode> {
    let path = std::fs::canonicalize(&options.path)
        .with_context(|| format!("reading the directory {}", options.path.display()))?;
    let root = root(options, &path)?;
    let directory = path
        .strip_prefix(&root)
        .with_context(|| format!("{} is not within {}", path.display(), root.display()))?;
    let directory = directory.to_str().context("the path is not UTF-8")?;
    let params = params(options)?;
    let tree = disk::load(&root)?;
    let begun = Instant::now();
    let ports = Ports {
        environment: &Surroundings::default(),
        fetcher: None,
    };
    let rendered = render(&tree, directory, None, &params, ports).map_err(|error| {
        let hint =
            "\nif it needs files outside of that directory, name the directory around both with --root";
        let escapes = options.root.is_none() && error.to_string().contains("leads out");
        anyhow::anyhow!("{error}{}", if escapes { hint } else { "" })
    })?;
    if options.stats {
        tell(&rendered, begun);
    }
    for warning in &rendered.warnings {
        eprintln!("Warning: {warning}");
    }
    if let Some(tool) = options.diff_with {
        return original::compare(tool, options, &params, &rendered);
    }
    match options.output {
        Format::Yaml => print!("{}", rendered.text),
        Format::Json => println!("{:#}", Value::Array(rendered.objects)),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(rendered: &Rendered, begun: Instant) {
    let took = begun.elapsed();
    eprintln!(
        "{:?}: {} objects, {} bytes, {} files, {:.1} ms",
        rendered.kind,
        rendered.objects.len(),
        rendered.text.len(),
        rendered.inputs.files.len(),
        took.as_secs_f64() * 1000.0
    );
    for file in &rendered.inputs.files {
        eprintln!("  {file}");
    }
}

/// The Git repository around a directory, else the directory itself.
fn root(options: &Render, path: &Path) -> anyhow::Result<PathBuf> {
    if let Some(root) = &options.root {
        return std::fs::canonicalize(root)
            .with_context(|| format!("reading the directory {}", root.display()));
    }
    let repository = path.ancestors().find(|above| above.join(".git").exists());
    Ok(repository.unwrap_or(path).to_owned())
}

fn params(options: &Render) -> anyhow::Result<Params> {
    let mut values_files = Vec::new();
    for file in &options.values {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("reading the values file {}", file.display()))?;
        values_files.push(ValuesFile::Given(file.display().to_string(), text));
    }
    Ok(Params {
        env: substituted(options)?,
        dialect: Dialect::Extended,
        helm: HelmSource {
            release: Release {
                name: options.release.clone(),
                namespace: options.namespace.clone(),
                ..Release::default()
            },
            values_files,
            set: options.set.clone(),
            set_string: options.set_string.clone(),
            set_json: options.set_json.clone(),
            include_crds: options.include_crds,
            ..HelmSource::default()
        },
        kustomize: kustomize::Options {
            reorder: match options.reorder {
                Order::Legacy => kustomize::Reorder::Legacy,
                Order::None => kustomize::Reorder::None,
            },
            ..kustomize::Options::default()
        },
        directory: DirectorySource {
            recurse: options.recurse,
            include: options.include.clone(),
            exclude: options.exclude.clone(),
        },
    })
}

/// What is substituted in the result; none: nothing is.
fn substituted(options: &Render) -> anyhow::Result<Option<BTreeMap<String, String>>> {
    if options.env.is_empty() && options.env_from.is_empty() {
        return Ok(None);
    }
    let mut env = BTreeMap::new();
    for file in &options.env_from {
        let named = file.display().to_string();
        let text =
            std::fs::read_to_string(file).with_context(|| format!("reading the variables in {named}"))?;
        env.extend(variables(&text, &named).context("--env-from")?);
    }
    for variable in &options.env {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => match std::env::var(variable) {
                Ok(value) => (variable.as_str(), value),
                Err(_) => {
                    bail!("--env {variable}: the environment has no such variable; write {variable}=VALUE")
                }
            },
        };
        env.insert(name.to_owned(), value);
    }
    Ok(Some(env))
}

/// The real clock and real chance; no cluster.
#[derive(Default)]
struct Surroundings {
    random: Random,
}

struct Random(SystemRandom);

impl Default for Random {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Environment for Surroundings {
    fn now(&self) -> i128 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
    }

    fn entropy(&self, buffer: &mut [u8]) {
        // The system's source fails only where it does not exist; then nothing secret can be made at all.
        if self.random.0.fill(buffer).is_err() {
            std::process::abort();
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, String> {
        Ok(Value::Null)
    }
}
