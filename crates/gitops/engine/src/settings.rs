//! What an installation is told by its ConfigMap `argocd-cm`, and by the project of an application.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_api::argoproj::{API_VERSION, CONTROL_PLANES};
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_gitops_health::{Customizations, Judge, lua};
use fairway_gitops_sync::annotation;
use fairway_gitops_sync::diff::ignore::IgnoreStatus;
use fairway_gitops_sync::guard::Guard;
use fairway_gitops_sync::project::{Destination, GroupKind, ProjectSpec};
use fairway_gitops_sync::tracking::{DEFAULT_LABEL, Method, Tracking};
use fairway_gitops_sync::window::SyncWindow;
use serde::Deserialize;
use serde_json::Value;

use crate::application::Application;

/// The ConfigMap with the settings.
pub(crate) const SETTINGS: &str = "argocd-cm";
/// The ConfigMap with the variables of the built-in plugin.
const VARIABLES: &str = "environment-variables";
/// On a project: how many objects a sync may delete without being asked, or `unlimited`.
const MAX_DELETIONS: &str = "fairway.dev/max-deletions";
/// On a project: `false` if machines and disks may be deleted without being asked.
const GUARD_PRECIOUS: &str = "fairway.dev/guard-precious";

/// The settings of an installation.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) tracking: Tracking,
    pub(crate) judge: Judge,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) ignore_aggregated_roles: bool,
    pub(crate) ignore_status: IgnoreStatus,
    /// By which schemes files of values may be fetched.
    pub(crate) value_schemes: Vec<String>,
    /// Whether charts of repositories are fetched for kustomizations (`--enable-helm`).
    pub(crate) fetches_charts: bool,
    /// What is wrong with them.
    pub(crate) complaint: Option<String>,
}

/// Kinds that applications do not manage.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Exclusion {
    api_groups: Vec<String>,
    kinds: Vec<String>,
    clusters: Vec<String>,
}

impl Settings {
    fn read(config: &Value) -> Self {
        let text = |key: &str| config["data"][key].as_str().unwrap_or_default();
        let mut complaints = Vec::new();
        let pairs = config["data"].as_object().into_iter().flatten();
        let pairs = pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let customizations = Customizations::read(pairs).unwrap_or_else(|error| {
            complaints.push(error.to_string());
            Customizations::default()
        });
        let mut document = |key: &str| -> Value {
            match text(key) {
                "" => Value::Null,
                yaml => serde_json::to_value(kube_yaml(yaml).unwrap_or_else(|why| {
                    complaints.push(format!("{key} of {SETTINGS}: {why}"));
                    Value::Null
                }))
                .unwrap_or(Value::Null),
            }
        };
        let exclusions = document("resource.exclusions");
        let exclusions = Vec::<Exclusion>::deserialize(exclusions).unwrap_or_default();
        let compare = document("resource.compareoptions");
        let ignore_status = match compare["ignoreResourceStatusField"].as_str() {
            Some("crd") => IgnoreStatus::Definitions,
            Some("none" | "off") => IgnoreStatus::None,
            _ => IgnoreStatus::All,
        };
        let label = match text("application.instanceLabelKey") {
            "" => DEFAULT_LABEL,
            own => own,
        };
        Self {
            tracking: Tracking {
                method: Method::parse(text("application.resourceTrackingMethod")),
                label: label.to_owned(),
                installation: text("installationID").to_owned(),
            },
            judge: Judge {
                customizations,
                limits: lua::Limits::default(),
                stopwatch: Some(stopwatch()),
            },
            exclusions,
            ignore_aggregated_roles: compare["ignoreAggregatedRoles"].as_bool().unwrap_or(false),
            ignore_status,
            value_schemes: match config["data"]["helm.valuesFileSchemes"].as_str() {
                None => vec!["https".to_owned(), "http".to_owned()],
                Some(list) => list
                    .split(',')
                    .map(|scheme| scheme.trim().to_owned())
                    .filter(|scheme| !scheme.is_empty())
                    .collect(),
            },
            fetches_charts: text("kustomize.buildOptions")
                .split_whitespace()
                .any(|option| option == "--enable-helm"),
            complaint: (!complaints.is_empty()).then(|| complaints.join("; ")),
        }
    }

    /// Whether a kind is not managed at a destination.
    pub(crate) fn excludes(&self, group: &str, kind: &str, server: &str) -> bool {
        let any = |patterns: &[String], text: &str| {
            patterns.is_empty()
                || patterns
                    .iter()
                    .any(|pattern| fairway_text_glob::matches(pattern, text))
        };
        self.exclusions.iter().any(|exclusion| {
            any(&exclusion.api_groups, group)
                && any(&exclusion.kinds, kind)
                && any(&exclusion.clusters, server)
        })
    }
}

fn kube_yaml(text: &str) -> Result<Value, String> {
    fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default()).map_err(|error| error.to_string())
}

/// Measures the time of scripts.
fn stopwatch() -> lua::Stopwatch {
    let begun = std::time::Instant::now();
    Arc::new(move || -> Duration { begun.elapsed() })
}

/// A project, and what it is read for.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) spec: ProjectSpec,
    pub(crate) windows: Vec<SyncWindow>,
    pub(crate) accounts: Vec<ServiceAccount>,
    /// Whether objects of nobody in an application's namespace are reported, and which are not.
    pub(crate) orphans: Option<Orphans>,
    pub(crate) guard: Guard,
    /// What of it cannot be used.
    pub(crate) complaint: Option<String>,
}

/// An entry of `destinationServiceAccounts`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServiceAccount {
    pub(crate) server: String,
    pub(crate) namespace: String,
    pub(crate) default_service_account: String,
}

/// `orphanedResources`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Orphans {
    pub(crate) warn: Option<bool>,
    pub(crate) ignore: Vec<GroupKind>,
}

impl Project {
    /// The project `default` where nobody has made one: everything is allowed.
    fn open() -> Self {
        let any = || "*".to_owned();
        Self {
            name: "default".to_owned(),
            spec: ProjectSpec {
                source_repos: vec![any()],
                destinations: vec![Destination {
                    server: any(),
                    name: any(),
                    namespace: any(),
                }],
                cluster_resource_whitelist: vec![GroupKind {
                    group: any(),
                    kind: any(),
                    name: String::new(),
                }],
                ..ProjectSpec::default()
            },
            windows: Vec::new(),
            accounts: Vec::new(),
            orphans: None,
            guard: Guard::default(),
            complaint: None,
        }
    }

    fn read(name: &str, object: &Value) -> Self {
        let spec = &object["spec"];
        let mut complaints = Vec::new();
        let list = |field: &str| {
            spec.get(field)
                .cloned()
                .unwrap_or_else(|| Value::Array(Vec::new()))
        };
        let windows = Vec::<SyncWindow>::deserialize(list("syncWindows")).unwrap_or_else(|error| {
            complaints.push(format!("syncWindows: {error}"));
            Vec::new()
        });
        let accounts = Vec::<ServiceAccount>::deserialize(list("destinationServiceAccounts"));
        let accounts = accounts.unwrap_or_else(|error| {
            complaints.push(format!("destinationServiceAccounts: {error}"));
            Vec::new()
        });
        let permitted = ProjectSpec::deserialize(spec).unwrap_or_else(|error| {
            // What cannot be read allows nothing.
            complaints.push(error.to_string());
            ProjectSpec::default()
        });
        let mut guard = Guard::default();
        match annotation::get(object, MAX_DELETIONS) {
            "" => {}
            "unlimited" => guard.max_deletions = None,
            number => match number.parse() {
                Ok(number) => guard.max_deletions = Some(number),
                Err(_) => complaints.push(format!("the annotation {MAX_DELETIONS}: {number:?} is no number")),
            },
        }
        guard.precious = annotation::get(object, GUARD_PRECIOUS) != "false";
        Self {
            name: name.to_owned(),
            spec: permitted,
            windows,
            accounts,
            orphans: Option::<Orphans>::deserialize(&spec["orphanedResources"]).unwrap_or_default(),
            guard,
            complaint: (!complaints.is_empty()).then(|| format!("project {name}: {}", complaints.join("; "))),
        }
    }
}

pub(crate) type Versioned<T> = Mutex<HashMap<ObjectKey, (String, Arc<T>)>>;

/// Reads settings and projects, and remembers what it made of them until they change.
#[derive(Default)]
pub(crate) struct Catalog {
    settings: Versioned<Settings>,
    projects: Versioned<Project>,
}

impl Catalog {
    /// The settings for an application: those of its own namespace, or of the first control plane that has any.
    pub(crate) async fn settings(
        &self,
        requests: &Requests,
        application: &Application,
    ) -> Result<Arc<Settings>, Failure> {
        for namespace in control_planes(application) {
            let key = ObjectKey::new(&application.key.workspace, namespace, SETTINGS);
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{SETTINGS}");
            if let Some(config) = requests.get(&path).await? {
                return Ok(remembered(&self.settings, key, &config, || {
                    Settings::read(&config)
                }));
            }
        }
        Ok(Arc::new(Settings::read(&Value::Null)))
    }

    /// The project of an application; none if there is none of that name.
    pub(crate) async fn project(
        &self,
        requests: &Requests,
        application: &Application,
    ) -> Result<Option<Arc<Project>>, Failure> {
        let name = application.project();
        for namespace in control_planes(application) {
            let key = ObjectKey::new(&application.key.workspace, namespace, name);
            let path = format!("/apis/{API_VERSION}/namespaces/{namespace}/appprojects/{name}");
            if let Some(object) = requests.get(&path).await? {
                let project = remembered(&self.projects, key, &object, || Project::read(name, &object));
                return Ok(Some(project));
            }
        }
        Ok((name == "default").then(|| Arc::new(Project::open())))
    }

    /// The variables of the built-in plugin.
    pub(crate) async fn variables(
        &self,
        requests: &Requests,
        application: &Application,
    ) -> Result<BTreeMap<String, String>, Failure> {
        for namespace in control_planes(application) {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{VARIABLES}");
            if let Some(config) = requests.get(&path).await? {
                return Ok(BTreeMap::deserialize(&config["data"]).unwrap_or_default());
            }
        }
        Ok(BTreeMap::new())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn remembered<T>(
    memory: &Versioned<T>,
    key: ObjectKey,
    object: &Value,
    make: impl FnOnce() -> T,
) -> Arc<T> {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let mut memory = lock(memory);
    match memory.get(&key) {
        Some((known, value)) if known == version => Arc::clone(value),
        _ => {
            let value = Arc::new(make());
            memory.insert(key, (version.to_owned(), Arc::clone(&value)));
            value
        }
    }
}

/// Where the settings of an application are looked for.
fn control_planes(application: &Application) -> Vec<&str> {
    control_planes_of(&application.key.namespace)
}

/// The same, by the namespace that the application is in.
pub(crate) fn control_planes_of(namespace: &str) -> Vec<&str> {
    match CONTROL_PLANES.contains(&namespace) {
        true => vec![namespace],
        false => CONTROL_PLANES.to_vec(),
    }
}
