//! `fairway render`: what a directory of a repository comes to.

mod disk;
mod original;
pub(super) mod remote;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use fairway_gitops_helm::{Environment, Release};
use fairway_gitops_kustomize as kustomize;
use fairway_gitops_render::{
    Dialect, DirectorySource, Error as RenderError, HelmSource, Kind, Params, Ports, Rendered, ValuesFile,
    render, variables,
};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

use self::remote::Remote;
use crate::cli::render::{Format, Order, Render};

/// Runs the command.
pub(crate) fn run(options: &Render) -> anyhow::Result<ExitCode> {
    let path = std::fs::canonicalize(&options.path)
        .with_context(|| format!("reading the directory {}", options.path.display()))?;
    let params = params(options)?;
    let begun = Instant::now();
    let rendered = render_within(&roots(options, &path)?, &path, options, &params)?;
    if options.stats {
        tell(&rendered, begun);
    }
    for warning in &rendered.warnings {
        eprintln!("Warning: {warning}");
    }
    if let Some(tool) = options.diff_with {
        return original::compare(tool, options, &params, &rendered);
    }
    let mut out = std::io::stdout().lock();
    match options.output {
        Format::Yaml => out.write_all(rendered.text.as_bytes())?,
        Format::Json => writeln!(out, "{:#}", Value::Array(rendered.objects))?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Renders with the first of these roots that is high enough.
fn render_within(
    roots: &[PathBuf],
    path: &Path,
    options: &Render,
    params: &Params,
) -> anyhow::Result<Rendered> {
    let remote = remote(options)?;
    let surroundings = Surroundings::default();
    let ports = Ports {
        environment: &surroundings,
        fetcher: remote.as_ref().map(|remote| remote as &dyn kustomize::Fetcher),
    };
    // A chart may be packed.
    let kind = path.is_file().then_some(Kind::Helm);
    for (at, root) in roots.iter().enumerate() {
        let directory = path
            .strip_prefix(root)
            .with_context(|| format!("{} is not within {}", path.display(), root.display()))?;
        let directory = directory.to_str().context("the path is not UTF-8")?;
        match render(&disk::tree(root), directory, kind, params, ports) {
            Err(error) if is_above(&error) && at + 1 < roots.len() => {}
            Err(error) => return Err(anyhow!("{error}{}", hint(&error, options))),
            Ok(rendered) => return Ok(rendered),
        }
    }
    bail!("there is no directory to read from")
}

fn is_above(error: &RenderError) -> bool {
    matches!(error, RenderError::Kustomize(error) if error.kind() == kustomize::ErrorKind::Above)
}

/// What to do next.
fn hint(error: &RenderError, options: &Render) -> &'static str {
    let is_remote =
        matches!(error, RenderError::Kustomize(error) if error.kind() == kustomize::ErrorKind::Remote);
    if is_above(error) && options.root.is_none() {
        "\nif it needs files outside of that directory, name the directory around both with --root"
    } else if is_remote && !options.allow_remote {
        "\nto fetch it, pass --allow-remote"
    } else {
        ""
    }
}

fn remote(options: &Render) -> anyhow::Result<Option<Remote>> {
    if !options.allow_remote {
        return Ok(None);
    }
    let cache = match &options.remote_cache {
        Some(cache) => std::path::absolute(cache).context("finding the cache")?,
        None => Remote::default_cache()
            .context("there is neither HOME nor XDG_CACHE_HOME; pass --remote-cache")?,
    };
    Ok(Some(Remote::new(cache)))
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

/// The directories that may be the root of what is read, in the order in which they are tried: the one that was given, the
/// Git repository around the source, or else, as kustomize reads bases wherever they are, ever higher ones.
fn roots(options: &Render, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if let Some(root) = &options.root {
        let root = std::fs::canonicalize(root)
            .with_context(|| format!("reading the directory {}", root.display()))?;
        return Ok(vec![root]);
    }
    let directories = || path.ancestors().filter(|above| above.is_dir());
    let repository = directories().find(|above| above.join(".git").exists());
    Ok(match repository {
        Some(repository) => vec![repository.to_owned()],
        None => directories().map(Path::to_owned).collect(),
    })
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

#[cfg(test)]
mod tests;
