//! An Application as the engine reads it. What it does not act on stays where it is.

use std::collections::BTreeMap;

use fairway_api::argoproj::{API_VERSION, CONTROL_PLANES, SKIP_RECONCILE_ANNOTATION};
use fairway_controller::ObjectKey;
use fairway_gitops_sync::annotation;
use fairway_gitops_sync::diff::ignore::ResourceIgnoreDifferences;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An Application.
#[derive(Debug, Clone)]
pub(crate) struct Application {
    pub(crate) key: ObjectKey,
    /// As it was read.
    pub(crate) object: Value,
    pub(crate) spec: Spec,
}

/// `spec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) project: String,
    pub(crate) destination: Destination,
    pub(crate) source: Option<Source>,
    pub(crate) sources: Vec<Source>,
    pub(crate) source_hydrator: Value,
    pub(crate) sync_policy: Option<SyncPolicy>,
    pub(crate) ignore_differences: Vec<ResourceIgnoreDifferences>,
    pub(crate) revision_history_limit: Option<i64>,
}

/// Where objects go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Destination {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// `spec.syncPolicy`; what is automated is read by whoever decides it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SyncPolicy {
    pub(crate) sync_options: Vec<String>,
    pub(crate) managed_namespace_metadata: Option<NamespaceLabels>,
    pub(crate) retry: Option<Value>,
}

/// What a namespace gets that the application makes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamespaceLabels {
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

/// A source of manifests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Source {
    #[serde(rename = "repoURL")]
    pub(crate) repo_url: String,
    pub(crate) path: String,
    pub(crate) target_revision: String,
    pub(crate) chart: String,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) helm: Option<Helm>,
    pub(crate) kustomize: Option<Kustomize>,
    pub(crate) directory: Option<Directory>,
    pub(crate) plugin: Option<Plugin>,
}

impl Source {
    /// Whether others only read files of it.
    pub(crate) fn is_only_referred_to(&self) -> bool {
        !self.reference.is_empty() && self.path.is_empty() && self.chart.is_empty()
    }
}

/// How a chart is rendered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Helm {
    pub(crate) release_name: String,
    pub(crate) value_files: Vec<String>,
    pub(crate) ignore_missing_value_files: bool,
    pub(crate) values: String,
    pub(crate) values_object: Option<Value>,
    pub(crate) parameters: Vec<HelmParameter>,
    pub(crate) file_parameters: Vec<FileParameter>,
    pub(crate) namespace: String,
    pub(crate) kube_version: String,
    pub(crate) api_versions: Vec<String>,
    pub(crate) skip_crds: bool,
    pub(crate) skip_tests: bool,
    pub(crate) skip_schema_validation: bool,
    pub(crate) pass_credentials: bool,
}

/// A value of a chart.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HelmParameter {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) force_string: bool,
}

/// A value of a chart that is a file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FileParameter {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// What is laid over a kustomization.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Kustomize {
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) images: Vec<String>,
    pub(crate) replicas: Vec<Value>,
    pub(crate) patches: Vec<Value>,
    pub(crate) components: Vec<String>,
    pub(crate) ignore_missing_components: bool,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) common_annotations_envsubst: bool,
    pub(crate) label_without_selector: bool,
    pub(crate) label_include_templates: bool,
    pub(crate) kube_version: String,
    pub(crate) api_versions: Vec<String>,
}

/// Which files of a directory.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Directory {
    pub(crate) recurse: bool,
    pub(crate) include: String,
    pub(crate) exclude: String,
    pub(crate) jsonnet: Value,
}

/// A plugin and what it is told.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) env: Vec<Variable>,
    pub(crate) parameters: Vec<Value>,
}

impl Plugin {
    /// Whether it is the one that runs `kustomize build | envsubst`.
    pub(crate) fn is_built_in(&self) -> bool {
        self.name.starts_with("setenv-cmp-plugin") || self.name.contains("envsubst")
    }
}

/// A variable of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Application {
    /// Reads an Application; the reason if its fields have other types than they should.
    pub(crate) fn read(key: &ObjectKey, object: Value) -> Result<Self, (String, Value)> {
        let spec = match Spec::deserialize(&object["spec"]) {
            Ok(spec) => spec,
            Err(error) => return Err((format!("application spec is invalid: {error}"), object)),
        };
        Ok(Self {
            key: key.clone(),
            object,
            spec,
        })
    }

    /// Whether its namespace is one of the control plane's.
    pub(crate) fn is_in_control_plane(&self) -> bool {
        CONTROL_PLANES.contains(&self.key.namespace.as_str())
    }

    /// The name by which its objects know it.
    pub(crate) fn instance(&self) -> String {
        match self.is_in_control_plane() {
            true => self.key.name.clone(),
            false => format!("{}_{}", self.key.namespace, self.key.name),
        }
    }

    /// The project's name.
    pub(crate) fn project(&self) -> &str {
        match self.spec.project.as_str() {
            "" => "default",
            name => name,
        }
    }

    /// Its sources, whichever way it names them.
    pub(crate) fn sources(&self) -> Vec<Source> {
        match self.spec.sources.is_empty() {
            false => self.spec.sources.clone(),
            true => self.spec.source.iter().cloned().collect(),
        }
    }

    /// Whether it names several.
    pub(crate) fn has_multiple_sources(&self) -> bool {
        !self.spec.sources.is_empty()
    }

    /// The sources as they are written.
    pub(crate) fn raw_sources(&self) -> Value {
        match self.has_multiple_sources() {
            true => self.object["spec"]["sources"].clone(),
            false => self.object["spec"]["source"].clone(),
        }
    }

    pub(crate) fn status(&self) -> &Value {
        &self.object["status"]
    }

    /// Whether it asks to be left alone, in the words that Go takes for true.
    pub(crate) fn is_skipped(&self) -> bool {
        ["1", "t", "T", "true", "TRUE", "True"].contains(&self.annotation(SKIP_RECONCILE_ANNOTATION))
    }

    pub(crate) fn is_deleting(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_null()
    }

    /// Its finalizers.
    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let list = self.object["metadata"]["finalizers"].as_array();
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn uid(&self) -> &str {
        self.object["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub(crate) fn annotation(&self, name: &str) -> &str {
        annotation::get(&self.object, name)
    }

    /// The path of its API object.
    pub(crate) fn path(&self) -> String {
        path_of(&self.key)
    }

    pub(crate) fn sync_options(&self) -> &[String] {
        self.spec
            .sync_policy
            .as_ref()
            .map_or(&[], |policy| policy.sync_options.as_slice())
    }
}

/// The path of an Application.
pub(crate) fn path_of(key: &ObjectKey) -> String {
    format!(
        "/apis/{API_VERSION}/namespaces/{}/applications/{}",
        key.namespace, key.name
    )
}
