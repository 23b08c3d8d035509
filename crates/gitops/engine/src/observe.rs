//! What is declared and what is there, side by side.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};

use fairway_controller::kinds::Kind;
use fairway_controller::{Failure, error};
use fairway_gitops_health::aggregate::{self, Part};
use fairway_gitops_health::{Health, Status};
use fairway_gitops_sync::compare::{self, Pair, Policy, ResourceState, SyncStatus};
use fairway_gitops_sync::diff::ignore::Ignored;
use fairway_gitops_sync::diff::{self, Difference};
use fairway_gitops_sync::key::{self, ResourceKey};
use fairway_gitops_sync::operation::{ApplyMode, SyncOptions};
use fairway_gitops_sync::tracking::Tracking;
use jiff::Timestamp;
use serde_json::Value;

use crate::act::{Hands, Refusal};
use crate::application::Application;
use crate::cluster::{Cluster, Known};
use crate::conditions::{Condition, Type};
use crate::desired::Rendered;
use crate::destination::Place;
use crate::settings::{Project, Settings};
pub(crate) use kinds::{KindsInUse, in_use as kinds_in_use};

/// What an observation is made of.
pub(crate) struct Scene<'a> {
    pub(crate) application: &'a Application,
    pub(crate) place: &'a Place,
    pub(crate) project: &'a Project,
    pub(crate) settings: &'a Settings,
    /// What writes there.
    pub(crate) hands: &'a Hands,
    /// The API that Applications are in.
    pub(crate) home: &'a Cluster,
    /// Whether it is only asked what would be: then nobody is watched for it.
    pub(crate) is_plan: bool,
}

impl Scene<'_> {
    /// How objects of this application are marked. Those of another workspace are marked with it, since theirs may have
    /// an application of the same name.
    pub(crate) fn tracking(&self) -> Tracking {
        let mut tracking = self.settings.tracking.clone();
        if !self.place.is_home && self.place.is_inside && tracking.installation.is_empty() {
            self.application
                .key
                .workspace
                .as_str()
                .clone_into(&mut tracking.installation);
        }
        tracking
    }
}

/// An object that is declared, there, or both, and what is thought of it.
pub(crate) struct Observed {
    pub(crate) pair: Pair,
    pub(crate) difference: Difference,
    pub(crate) state: ResourceState,
    pub(crate) health: Option<Health>,
}

/// What was found.
pub(crate) struct Observation {
    pub(crate) objects: Vec<Observed>,
    pub(crate) hooks: Vec<Value>,
    /// Hooks that are there, by key.
    pub(crate) live_hooks: BTreeMap<ResourceKey, Value>,
    pub(crate) kinds: KindsInUse,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) sync: SyncStatus,
    pub(crate) health: Status,
    /// Objects of other applications, with the words for it.
    pub(crate) shared: Vec<(ResourceKey, String)>,
    /// What the project does not allow, with the words for it.
    pub(crate) refused: Vec<(ResourceKey, String)>,
    pub(crate) ignored: Ignored,
    pub(crate) live_namespace: Option<Value>,
    /// Images of what its objects own.
    pub(crate) child_images: BTreeSet<String>,
    /// Whether hooks after a deletion are declared.
    pub(crate) tracking: Tracking,
}

/// Looks at everything.
pub(crate) async fn observe(scene: &Scene<'_>, rendered: Option<&Rendered>) -> Result<Observation, Failure> {
    let Scene {
        application,
        place,
        project,
        settings,
        ..
    } = *scene;
    let tracking = scene.tracking();
    let instance = application.instance();
    let namespace = application.spec.destination.namespace.as_str();
    let mut conditions = Vec::new();
    let mut unknown = rendered.is_none_or(|rendered| rendered.failure.is_some());
    let mut targets = rendered.map(Rendered::objects).unwrap_or_default();
    let is_excluded =
        |object: &Value| settings.excludes(key::group(object), key::kind(object), &place.server);
    for object in targets.iter().filter(|object| is_excluded(object)) {
        let (group, kind) = (key::group(object), key::kind(object));
        conditions.push(Condition::new(
            Type::ExcludedResourceWarning,
            format!(
                "Resource {group}/{kind} {} is excluded in the settings",
                key::name(object)
            ),
        ));
    }
    targets.retain(|object| !is_excluded(object));
    for target in targets.iter_mut().filter(|target| !key::is_definition(target)) {
        tracking.mark(target, &instance, namespace);
    }
    let kinds = match kinds::in_use(application, place, &targets).await {
        Ok(kinds) => kinds,
        Err(failure) => {
            unknown = true;
            conditions.push(Condition::new(
                Type::ComparisonError,
                format!("Failed to load live state: {}", failure.sentence()),
            ));
            KindsInUse::default()
        }
    };
    if !kinds.is_empty()
        && !scene.is_plan
        && let Err(why) = place.cluster.watch(&application.key, &kinds.watchable()).await
    {
        unknown = true;
        conditions.push(Condition::new(
            Type::ComparisonError,
            format!("Failed to load live state: {why}"),
        ));
    }
    if place.cluster.is_ending() {
        return Err(Failure::NotYet("the engine ends".to_owned()));
    }
    if !scene.is_plan {
        place
            .cluster
            .wait_for_kinds(&application.key, kinds.are_some_missing());
    }
    let mut live = BTreeMap::new();
    for object in place.cluster.marked(&place.workspace, &instance, &tracking) {
        let key = ResourceKey::of(&object);
        if is_excluded(&object) || !is_permitted(&key, &kinds, place, project) {
            continue;
        }
        live.insert(key, object);
    }
    for target in &targets {
        let Some(kind) = kinds.of(target) else {
            continue;
        };
        let mut key = ResourceKey::of(target);
        match (kind.namespaced, key.namespace.is_empty()) {
            (true, true) => namespace.clone_into(&mut key.namespace),
            (false, false) => key.namespace.clear(),
            _ => {}
        }
        if kind.namespaced && key.namespace.is_empty() {
            conditions.push(Condition::new(
                Type::InvalidSpecError,
                format!(
                    "Namespace for {} {} is missing.",
                    key.name,
                    target["apiVersion"].as_str().unwrap_or_default()
                ),
            ));
            continue;
        }
        if key.name.is_empty() {
            continue;
        }
        match read(scene, kind, target, &key).await {
            Ok(Some(object)) => {
                live.insert(key, object);
            }
            Ok(None) => {
                live.remove(&key);
            }
            Err(refusal) => {
                unknown = true;
                conditions.push(Condition::new(
                    Type::ComparisonError,
                    format!("Failed to load live state: {}", refusal.message),
                ));
            }
        }
    }
    let scope = |group: &str, kind: &str| kinds.get(group, kind).map(|kind| kind.namespaced);
    let pairs = compare::pair(targets, &live, namespace, &scope);
    let mut repeated: BTreeMap<&ResourceKey, usize> = BTreeMap::new();
    for key in &pairs.repeated {
        *repeated.entry(key).or_insert(1) += 1;
    }
    for (key, count) in repeated {
        conditions.push(Condition::new(
            Type::RepeatedResourceWarning,
            format!("Resource {key} appeared {count} times among application resources."),
        ));
    }
    let mut interests: BTreeSet<ResourceKey> = pairs.managed.iter().map(|pair| pair.key.clone()).collect();
    interests.extend(
        pairs
            .hooks
            .iter()
            .map(ResourceKey::of)
            .filter(|key| !key.name.is_empty()),
    );
    if !namespace.is_empty() {
        interests.insert(ResourceKey::new("", "Namespace", "", namespace));
    }
    if !scene.is_plan {
        place
            .cluster
            .interest(&application.key, &place.workspace, interests);
    }
    let ignored = Ignored::new(
        &application.spec.ignore_differences,
        &settings.judge.customizations,
        settings.ignore_status,
    );
    let ignored = ignored.unwrap_or_else(|error| {
        unknown = true;
        conditions.push(Condition::new(
            Type::ComparisonError,
            format!("Failed to compare desired state to live state: {error}"),
        ));
        Ignored::default()
    });
    let judging = Judging {
        scene,
        tracking: &tracking,
        options: diff::Options {
            ignore_aggregated_roles: settings.ignore_aggregated_roles,
            ignore: ignored.clone(),
        },
        server_side: has_compare_option(application, "ServerSideDiff=true"),
        include_webhooks: has_compare_option(application, "IncludeMutationWebhook=true"),
        now: Timestamp::now(),
    };
    let mut objects = Vec::with_capacity(pairs.managed.len());
    let mut live_hooks = BTreeMap::new();
    let (mut shared, mut refused) = (Vec::new(), Vec::new());
    for pair in pairs.managed {
        if let (None, Some(object)) = (&pair.target, &pair.live)
            && fairway_gitops_sync::hook::is_hook(object)
        {
            live_hooks.insert(pair.key, object.clone());
            continue;
        }
        let is_meant = match (&pair.target, &pair.live) {
            (Some(target), Some(live)) => tracking.is_shared_on_purpose(target, live, &ignored),
            _ => false,
        };
        let other = pair
            .live
            .as_ref()
            .filter(|_| !is_meant)
            .and_then(|live| tracking.conflict(live, &instance));
        if let Some(other) = other {
            conditions.push(Condition::new(Type::SharedResourceWarning, other.clone()));
            shared.push((pair.key.clone(), other));
        }
        let namespaced = kinds
            .get(&pair.key.group, &pair.key.kind)
            .is_none_or(|kind| kind.namespaced);
        let to = place.for_project(namespace);
        let refusal = project
            .spec
            .refusal(&pair.key, namespaced, &to, &[], &project.name);
        if let Some(why) = &refusal {
            refused.push((pair.key.clone(), why.clone()));
        }
        objects.push(judging.judge(pair, refusal.is_none()).await);
    }
    if unknown {
        for observed in &mut objects {
            observed.state.status = observed.state.status.map(|_| SyncStatus::Unknown);
        }
    }
    let sync = compare::overall(objects.iter().map(|observed| &observed.state), unknown);
    let health = overall_health(application, &objects);
    let namespace_key = ResourceKey::new("", "Namespace", "", namespace);
    let live_namespace = match namespace.is_empty() {
        true => None,
        false => namespace_there(scene, &kinds, &namespace_key).await,
    };
    for hook in &pairs.hooks {
        let key = ResourceKey::of(hook);
        if let Some(object) = live.get(&key) {
            live_hooks.insert(key, object.clone());
        }
    }
    Ok(Observation {
        objects,
        hooks: pairs.hooks,
        live_hooks,
        kinds,
        conditions,
        sync,
        health,
        shared,
        refused,
        ignored,
        live_namespace,
        child_images: BTreeSet::new(),
        tracking,
    })
}

pub(crate) fn has_compare_option(application: &Application, option: &str) -> bool {
    let annotation = fairway_gitops_sync::annotation::COMPARE_OPTIONS;
    fairway_gitops_sync::annotation::has_option(&application.object, annotation, option)
}

/// Whether a live object may be looked at: what a project does not allow is none of the application's business.
fn is_permitted(key: &ResourceKey, kinds: &KindsInUse, place: &Place, project: &Project) -> bool {
    let namespaced = kinds
        .get(&key.group, &key.kind)
        .is_none_or(|kind| kind.namespaced);
    let to = place.for_project(&key.namespace);
    project
        .spec
        .refusal(key, namespaced, &to, &[], &project.name)
        .is_none()
}

/// The live object of a declared one, in the version in which it is declared.
async fn read(
    scene: &Scene<'_>,
    kind: &Kind,
    target: &Value,
    key: &ResourceKey,
) -> Result<Option<Value>, Refusal> {
    let api_version = target["apiVersion"].as_str().unwrap_or_default();
    if let Known::Is(object) = scene.place.cluster.known(&scene.place.workspace, key)
        && object["apiVersion"] == api_version
    {
        return Ok(Some(object));
    }
    read_anew(scene, kind, api_version, key).await
}

/// An object as it is now, with who owns which field.
pub(crate) async fn read_anew(
    scene: &Scene<'_>,
    kind: &Kind,
    api_version: &str,
    key: &ResourceKey,
) -> Result<Option<Value>, Refusal> {
    let client = scene.place.cluster.readers.of(&scene.place.workspace);
    let collection = crate::act::collection_path(kind, api_version, &key.namespace);
    let path = format!("{collection}/{}", key.name);
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error::is_not_found(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn namespace_there(scene: &Scene<'_>, kinds: &KindsInUse, key: &ResourceKey) -> Option<Value> {
    if !SyncOptions::read(scene.application.sync_options().iter().map(String::as_str)).create_namespace {
        return None;
    }
    let kind = kinds.get("", "Namespace")?;
    if let Known::Is(object) = scene.place.cluster.known(&scene.place.workspace, key) {
        return Some(object);
    }
    read_anew(scene, kind, "v1", key).await.ok().flatten()
}

struct Judging<'a> {
    scene: &'a Scene<'a>,
    tracking: &'a Tracking,
    options: diff::Options,
    server_side: bool,
    include_webhooks: bool,
    now: Timestamp,
}

impl Judging<'_> {
    async fn judge(&self, pair: Pair, permitted: bool) -> Observed {
        let mut live = pair.live.clone();
        if let (Some(target), Some(live)) = (&pair.target, live.as_mut()) {
            self.tracking.normalize(target, live);
        }
        let difference = match self.server_side_difference(&pair, live.as_ref()).await {
            Some(difference) => difference,
            None => diff::three_way(pair.target.as_ref(), live.as_ref(), &self.options),
        };
        let application = self.scene.application;
        let policy = Policy {
            options: application.sync_options(),
            managed_namespace: match application
                .sync_options()
                .iter()
                .any(|option| option == "CreateNamespace=true")
            {
                true => &application.spec.destination.namespace,
                false => "",
            },
        };
        let state = compare::judge(&pair, &difference, self.tracking, policy, permitted);
        let health = pair
            .live
            .as_ref()
            .and_then(|live| self.scene.settings.judge.health(live, self.now));
        Observed {
            pair,
            difference,
            state,
            health,
        }
    }

    /// What the API server says it would make of the declared object.
    async fn server_side_difference(&self, pair: &Pair, live: Option<&Value>) -> Option<Difference> {
        let (target, live) = pair.target.as_ref().zip(live).filter(|_| self.server_side)?;
        let kind = kinds::served(self.scene.place, target).await.ok()??;
        let mode = ApplyMode::Apply {
            server_side: true,
            force: false,
            validate: false,
        };
        let dry_run = self.scene.hands.dry_run(&kind, target, mode).await.ok()?;
        let manager = crate::act::FIELD_MANAGER;
        let include = self.include_webhooks;
        Some(diff::server_side(
            &dry_run,
            live,
            manager,
            None,
            include,
            &self.options,
        ))
    }
}

fn overall_health(application: &Application, objects: &[Observed]) -> Status {
    let parts: Vec<Part<'_>> = objects
        .iter()
        .filter(|observed| !observed.state.hook && observed.state.status.is_some())
        .map(|observed| {
            let key = &observed.pair.key;
            Part {
                group: &key.group,
                kind: &key.kind,
                live: observed.pair.live.as_ref(),
                health: observed.health.as_ref(),
                is_self: key.group == fairway_api::argoproj::GROUP
                    && key.kind == "Application"
                    && key.name == application.key.name
                    && key.namespace == application.key.namespace,
            }
        })
        .collect();
    aggregate::health(&parts)
}
