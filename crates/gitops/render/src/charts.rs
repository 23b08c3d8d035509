//! Charts: as a source of their own, and as what a kustomization inflates.

use fairway_gitops_helm as helm;
use fairway_gitops_kustomize::{ChartRenderer, ChartRequest};
use fairway_gitops_tree::Reader;
use serde_json::Value;

use crate::error::Error;

/// How a chart is rendered.
#[derive(Debug, Clone, Default)]
pub struct HelmSource {
    /// The release.
    pub release: helm::Release,
    /// Files of values, the later ones over the earlier ones.
    pub values_files: Vec<ValuesFile>,
    /// `--set` lines, after the files.
    pub set: Vec<String>,
    /// `--set-string` lines.
    pub set_string: Vec<String>,
    /// `--set-json` lines.
    pub set_json: Vec<String>,
    /// What the cluster can do.
    pub capabilities: helm::Capabilities,
    /// Whether the `crds` directory is part of the result.
    pub include_crds: bool,
    /// Whether hooks are left out.
    pub no_hooks: bool,
    /// Whether tests are left out.
    pub skip_tests: bool,
    /// Bounds and strictness.
    pub options: helm::Options,
}

impl HelmSource {
    fn output(&self) -> helm::Output {
        helm::Output {
            crds: self.include_crds,
            no_hooks: self.no_hooks,
            skip_tests: self.skip_tests,
        }
    }
}

/// A file of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuesFile {
    /// In the tree, from the chart's directory.
    InTree(String),
    /// Brought by the caller: a name for errors, and the text.
    Given(String, String),
}

/// The text that `helm template` would print, the objects in it, and what it would log.
pub(crate) fn render(
    reader: &Reader,
    directory: &str,
    source: &HelmSource,
    environment: &dyn helm::Environment,
) -> Result<(String, Vec<Value>, Vec<String>), Error> {
    let rendered = inflate(reader, directory, source, environment)?;
    let text = rendered.to_yaml(source.output());
    let objects = objects(rendered.manifests, rendered.hooks, &rendered.crds, source)?;
    Ok((text, objects, rendered.warnings))
}

/// The objects of a text, in its order. The renderer has read them already, to find the hooks among them.
fn objects(
    manifests: Vec<helm::Manifest>,
    hooks: Vec<helm::Hook>,
    crds: &[helm::Crd],
    source: &HelmSource,
) -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    if source.include_crds {
        for crd in crds {
            objects.extend(crate::objects(&crd.content, &crd.source)?);
        }
    }
    for manifest in manifests {
        crate::take_apart(manifest.object, &manifest.source, &mut objects)?;
    }
    if !source.no_hooks {
        for hook in hooks {
            if !(source.skip_tests && hook.is_test()) {
                crate::take_apart(hook.object, &hook.source, &mut objects)?;
            }
        }
    }
    Ok(objects)
}

fn inflate(
    reader: &Reader,
    directory: &str,
    source: &HelmSource,
    environment: &dyn helm::Environment,
) -> Result<helm::Rendered, Error> {
    let failed = |source: helm::Error| Error::Helm {
        directory: directory.to_owned(),
        source,
    };
    let chart = helm::Chart::load(reader, directory).map_err(failed)?;
    let mut values = helm::ValuesBuilder::new();
    for file in &source.values_files {
        match file {
            ValuesFile::InTree(path) => {
                let text = reader.read(&fairway_gitops_tree::path::join(directory, path)?)?;
                values.file(path, &text).map_err(failed)?;
            }
            ValuesFile::Given(name, text) => {
                values.file(name, text.as_bytes()).map_err(failed)?;
            }
        }
    }
    for line in &source.set_json {
        values.set_json(line).map_err(failed)?;
    }
    for line in &source.set {
        values.set(line).map_err(failed)?;
    }
    for line in &source.set_string {
        values.set_string(line).map_err(failed)?;
    }
    let values = values.build();
    let options = helm::Options {
        crds: source.include_crds,
        ..source.options
    };
    helm::render(
        &chart,
        &values,
        &source.release,
        &source.capabilities,
        &options,
        environment,
    )
    .map_err(failed)
}

/// Renders the charts of kustomizations.
pub struct Charts<'e> {
    environment: &'e dyn helm::Environment,
}

impl<'e> Charts<'e> {
    /// With this clock, chance and cluster.
    pub fn new(environment: &'e dyn helm::Environment) -> Self {
        Self { environment }
    }
}

impl ChartRenderer for Charts<'_> {
    fn render(&self, request: &ChartRequest<'_>) -> Result<String, String> {
        let mut capabilities = helm::Capabilities::default();
        if let Some(version) = request.kube_version {
            capabilities.kube_version = helm::KubeVersion::parse(version)?;
        }
        capabilities = capabilities.with_api_versions(request.api_versions.iter().cloned());
        let defaults = helm::Release::default();
        let name = match (request.release_name, request.name_template) {
            (Some(_), Some(_)) => {
                return Err("cannot set nameTemplate and also releaseName".to_owned());
            }
            (Some(name), None) => name.to_owned(),
            (None, Some(template)) => {
                helm::release_name(template, helm::Options::default().limits, self.environment)
                    .map_err(|error| error.to_string())?
            }
            (None, None) => defaults.name.clone(),
        };
        let source = HelmSource {
            release: helm::Release {
                name,
                namespace: request
                    .namespace
                    .map_or(defaults.namespace.clone(), str::to_owned),
                ..defaults
            },
            values_files: request
                .values
                .iter()
                .map(|(name, text)| ValuesFile::Given(name.clone(), text.clone()))
                .collect(),
            capabilities,
            include_crds: request.include_crds,
            no_hooks: request.skip_hooks,
            skip_tests: request.skip_tests,
            options: helm::Options {
                // kustomize reads the text itself.
                reading: helm::Reading::Head,
                ..helm::Options::default()
            },
            ..HelmSource::default()
        };
        inflate(request.reader, request.path, &source, self.environment)
            .map(|rendered| rendered.to_yaml(source.output()))
            .map_err(|error| error.to_string())
    }
}
