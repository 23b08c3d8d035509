//! Charts as a source of resources. The chart is rendered by the caller; what to render with which values is decided
//! here.

use fairway_gitops_tree::{Kind, Reader, path};
use fairway_text_yaml::to_string;
use serde_json::{Map, Value};

use crate::decode::Fields;
use crate::error::{Error, ErrorKind, Result, Within};
use crate::loader::Loader;
use crate::merge::{NewItems, merge};
use crate::read;
use crate::resource::Resource;

const DEFAULT_HOME: &str = "charts";

/// Renders charts.
pub trait ChartRenderer {
    /// The manifests of a chart, as `helm template` prints them.
    fn render(&self, request: &ChartRequest<'_>) -> std::result::Result<String, String>;
}

/// A chart and what to render it with.
#[derive(Debug)]
pub struct ChartRequest<'a> {
    /// The tree that has the chart.
    pub reader: &'a Reader,
    /// The chart's directory in it.
    pub path: &'a str,
    /// The release's name; none where `helm template` is to make one up.
    pub release_name: Option<&'a str>,
    /// A template for the release's name.
    pub name_template: Option<&'a str>,
    /// The release's namespace.
    pub namespace: Option<&'a str>,
    /// Values files, name and text, the later ones over the earlier ones.
    pub values: Vec<(String, String)>,
    /// What `.Capabilities.APIVersions` has in addition.
    pub api_versions: &'a [String],
    /// The version of Kubernetes.
    pub kube_version: Option<&'a str>,
    /// Whether the `crds` directory is part of the result.
    pub include_crds: bool,
    /// Whether hooks are left out.
    pub skip_hooks: bool,
    /// Whether tests are left out.
    pub skip_tests: bool,
}

/// Settings for all charts of a kustomization.
#[derive(Debug, Clone, Default)]
pub(crate) struct HelmGlobals {
    pub(crate) chart_home: String,
}

/// A chart of a kustomization.
#[derive(Debug, Clone, Default)]
pub(crate) struct HelmChart {
    name: String,
    version: String,
    repo: String,
    release_name: String,
    pub(crate) namespace: String,
    additional_values_files: Vec<String>,
    values_file: String,
    values_inline: Map<String, Value>,
    values_merge: String,
    include_crds: bool,
    skip_hooks: bool,
    api_versions: Vec<String>,
    kube_version: String,
    name_template: String,
    skip_tests: bool,
}

/// What the caller says about charts.
pub(crate) struct Helm<'r> {
    pub(crate) renderer: Option<&'r dyn ChartRenderer>,
    pub(crate) kube_version: &'r str,
    pub(crate) api_versions: &'r [String],
}

impl HelmGlobals {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        fields.string("configHome")?;
        Ok(Self {
            chart_home: fields.string("chartHome")?,
        })
    }
}

fn inline(fields: &Fields<'_>, name: &'static str) -> Result<Map<String, Value>> {
    match fields.get(name) {
        None => Ok(Map::new()),
        Some(Value::Object(values)) => Ok(values.clone()),
        Some(_) => Err(Error::new(format!("field \"{name}\" must be an object"))),
    }
}

impl HelmChart {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        fields.bool("debug")?;
        fields.bool("devel")?;
        Ok(Self {
            name: fields.string("name")?,
            version: fields.string("version")?,
            repo: fields.string("repo")?,
            release_name: fields.string("releaseName")?,
            namespace: fields.string("namespace")?,
            additional_values_files: fields.strings("additionalValuesFiles")?,
            values_file: fields.string("valuesFile")?,
            values_inline: inline(fields, "valuesInline")?,
            values_merge: fields.string("valuesMerge")?,
            include_crds: fields.bool("includeCRDs")?,
            skip_hooks: fields.bool("skipHooks")?,
            api_versions: fields.strings("apiVersions")?,
            kube_version: fields.string("kubeVersion")?,
            name_template: fields.string("nameTemplate")?,
            skip_tests: fields.bool("skipTests")?,
        })
    }

    /// Renders the chart.
    pub(crate) fn generate(
        &self,
        globals: &HelmGlobals,
        helm: &Helm<'_>,
        loader: &Loader<'_>,
    ) -> Result<Vec<Resource>> {
        self.try_generate(globals, helm, loader)
            .within(|| format!("chart '{}'", self.name))
    }

    fn try_generate(
        &self,
        globals: &HelmGlobals,
        helm: &Helm<'_>,
        loader: &Loader<'_>,
    ) -> Result<Vec<Resource>> {
        let renderer = helm
            .renderer
            .ok_or_else(|| Error::new("must specify --enable-helm: charts are not rendered here"))?;
        if self.name.is_empty() {
            return Err(Error::new("chart name cannot be empty"));
        }
        if !["", "merge", "override", "replace"].contains(&self.values_merge.as_str()) {
            return Err(Error::new("valuesMerge must be one of [merge override replace]"));
        }
        let (reader, chart, is_here) = self.locate(globals, loader)?;
        let values_file = match self.values_file.as_str() {
            "" => None,
            file => Some(file),
        };
        let default_values =
            path::join(&chart, "values.yaml").map_err(|error| Error::new(error.to_string()))?;
        let mut load = || -> Result<String> {
            let bytes = match values_file {
                Some(file) => loader.load(file)?,
                None => {
                    // The chart itself may lie anywhere. Its values count as a file of the kustomization, and may not.
                    if is_here {
                        loader.guard(&default_values).within(|| {
                            "without valuesFile, the chart must lie within the kustomization".to_owned()
                        })?;
                    }
                    reader
                        .read(&default_values)
                        .map_err(|error| Error::new(error.to_string()))?
                }
            };
            String::from_utf8(bytes.to_vec()).map_err(|_| Error::new("the values file is not valid UTF-8"))
        };
        let first = match self.values_inline.is_empty() {
            true => load()?,
            false => self.merged_values(&mut load, loader)?,
        };
        let mut values = vec![(values_file.unwrap_or("values.yaml").to_owned(), first)];
        for file in &self.additional_values_files {
            let bytes = loader
                .load(file)
                .within(|| "could not load additionalValuesFile".to_owned())?;
            let text = String::from_utf8(bytes.to_vec())
                .map_err(|_| Error::new(format!("the values file '{file}' is not valid UTF-8")))?;
            values.push((file.clone(), text));
        }
        let given = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
        let (release_name, name_template, namespace) = (
            given(&self.release_name),
            given(&self.name_template),
            given(&self.namespace),
        );
        let kube_version = given(&self.kube_version).or_else(|| given(helm.kube_version));
        let api_versions = match self.api_versions.is_empty() {
            true => helm.api_versions,
            false => &self.api_versions,
        };
        let rendered = renderer
            .render(&ChartRequest {
                reader: &reader,
                path: &chart,
                release_name: release_name.as_deref(),
                name_template: name_template.as_deref(),
                namespace: namespace.as_deref(),
                values,
                api_versions,
                kube_version: kube_version.as_deref(),
                include_crds: self.include_crds,
                skip_hooks: self.skip_hooks,
                skip_tests: self.skip_tests,
            })
            .map_err(Error::new)?;
        let mut resources = read::resources(rendered.as_bytes(), loader.limits())
            .within(|| "could not parse the rendered chart".to_owned())?;
        for resource in &mut resources {
            resource.helm_generated = true;
        }
        Ok(resources)
    }

    /// The tree and directory of the chart, and whether the tree is the kustomization's; else it was fetched.
    fn locate(&self, globals: &HelmGlobals, loader: &Loader<'_>) -> Result<(Reader, String, bool)> {
        let home = match globals.chart_home.as_str() {
            "" => DEFAULT_HOME,
            home => home,
        };
        let folder = match !self.version.is_empty() && !self.repo.is_empty() {
            true => format!("{home}/{}-{}/{}", self.name, self.version, self.name),
            false => format!("{home}/{}", self.name),
        };
        let local = path::join(&loader.root, &folder).map_err(|error| Error::new(error.to_string()))?;
        if matches!(loader.reader.kind(&local), Ok(Some(Kind::Directory))) {
            return Ok((loader.reader.clone(), local, true));
        }
        if self.repo.is_empty() {
            return Err(Error::new(format!(
                "no repo specified for pull, no chart found at '{local}'"
            )));
        }
        let fetcher = loader.fetcher().ok_or_else(|| {
            Error::of(
                ErrorKind::Remote,
                format!(
                    "no chart found at '{local}', and nothing is fetched from '{}'",
                    self.repo
                ),
            )
        })?;
        let tree = fetcher
            .chart(&self.repo, &self.name, &self.version)
            .map_err(|why| Error::of(ErrorKind::Remote, format!("fetching from '{}': {why}", self.repo)))?;
        Ok((tree.reader(), String::new(), false))
    }

    /// The inline values, over or under those of the file.
    fn merged_values(&self, load: &mut dyn FnMut() -> Result<String>, loader: &Loader<'_>) -> Result<String> {
        let own = Value::Object(self.values_inline.clone());
        if self.values_merge == "replace" {
            return Ok(to_string(&own));
        }
        let file = read::document(&load()?, loader.limits())
            .within(|| "could not parse values file".to_owned())?
            .value;
        let file = match file {
            Value::Null => Value::Object(Map::new()),
            file => file,
        };
        let merged = match self.values_merge.as_str() {
            "merge" => merge(&file, own, NewItems::Last, None),
            _ => merge(&own, file, NewItems::Last, None),
        };
        let merged = merged.within(|| "could not merge values".to_owned())?;
        Ok(to_string(&merged.unwrap_or(Value::Object(Map::new()))))
    }
}

/// The charts of the older field, and the settings in them.
pub(crate) fn split_legacy(fields: &Fields<'_>) -> Result<(Vec<HelmChart>, Option<HelmGlobals>)> {
    let mut globals = None;
    let charts = fields.list("helmChartInflationGenerator", |old| {
        for unused in ["chartRepoName", "helmBin", "helmHome", "releaseNamespace"] {
            old.string(unused)?;
        }
        old.strings("extraArgs")?;
        let chart_home = old.string("chartHome")?;
        if !chart_home.is_empty() {
            globals = Some(HelmGlobals { chart_home });
        }
        Ok(HelmChart {
            name: old.string("chartName")?,
            version: old.string("chartVersion")?,
            repo: old.string("chartRepoUrl")?,
            values_file: old.string("values")?,
            values_inline: inline(old, "valuesLocal")?,
            values_merge: old.string("valuesMerge")?,
            release_name: old.string("releaseName")?,
            ..HelmChart::default()
        })
    })?;
    Ok((charts, globals))
}
