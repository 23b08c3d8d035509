//! Charts: as a source of their own, and as what a kustomization inflates.

use fairway_gitops_helm as helm;
use fairway_gitops_kustomize::{ChartRenderer, ChartRequest};
use fairway_gitops_tree::Reader;

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

/// A file of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuesFile {
    /// In the tree, from the chart's directory.
    InTree(String),
    /// Brought by the caller: a name for errors, and the text.
    Given(String, String),
}

/// The text that `helm template` would print, and what it would log.
pub(crate) fn render(
    reader: &Reader,
    directory: &str,
    source: &HelmSource,
    environment: &dyn helm::Environment,
) -> Result<(String, Vec<String>), Error> {
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
    let rendered = helm::render(
        &chart,
        &values,
        &source.release,
        &source.capabilities,
        &source.options,
        environment,
    )
    .map_err(failed)?;
    let text = rendered.to_yaml(helm::Output {
        crds: source.include_crds,
        no_hooks: source.no_hooks,
        skip_tests: source.skip_tests,
    });
    Ok((text, rendered.warnings))
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
        let source = HelmSource {
            release: helm::Release {
                name: request.release_name.map_or(defaults.name.clone(), str::to_owned),
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
            ..HelmSource::default()
        };
        if request.name_template.is_some() {
            return Err("nameTemplate is not supported; set releaseName".to_owned());
        }
        render(request.reader, request.path, &source, self.environment)
            .map(|(text, _)| text)
            .map_err(|error| error.to_string())
    }
}
