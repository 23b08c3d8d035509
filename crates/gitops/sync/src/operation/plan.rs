//! What is to be done, as a list of tasks in order. It is made anew from the same input when a process takes over.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::options::SyncOptions;
use super::order;
use super::state::TaskId;
use crate::annotation::{self, HOOK_FINALIZER, SYNC_OPTIONS};
use crate::compare::Pair;
use crate::hook::{self, Phase, Role};
use crate::key::{self, ResourceKey};

/// Why something stays that others need.
const NEEDED: &str = "ignored (needed by other applications)";

/// One object in one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Which.
    pub id: TaskId,
    /// When inside the phase.
    pub wave: i64,
    /// What is applied; none: it is pruned.
    pub target: Option<Value>,
    /// The version of the object.
    pub version: String,
    /// Whether it is a hook.
    pub is_hook: bool,
    /// Whether it may be left out because it is in sync.
    pub is_in_sync: bool,
    /// Why it is not pruned, if it shall not be.
    pub keep: Option<&'static str>,
    /// Whether somebody must confirm that it is pruned.
    pub confirm: bool,
    /// Whether its kind is defined by another task, so that a dry run cannot know it.
    pub defined_here: bool,
    /// Which of all objects that ever had this name is pruned; empty for what is applied.
    pub uid: String,
    /// Whether it is being deleted already.
    pub is_going: bool,
}

impl Task {
    /// Whether it removes an object.
    pub fn is_prune(&self) -> bool {
        self.target.is_none()
    }
}

/// Everything that a sync will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In order.
    pub tasks: Vec<Task>,
    /// How.
    pub options: SyncOptions,
    /// Whether nothing is really to be done.
    pub dry_run: bool,
    /// Whether deletions that need it have been confirmed.
    pub prune_confirmed: bool,
    /// Why it cannot begin.
    pub invalid: Vec<(TaskId, String)>,
}

/// Labels and annotations of a namespace that the application makes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceMetadata {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// An object that is to be synced, where not all are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selected {
    /// Group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; any if empty.
    pub namespace: String,
}

impl Selected {
    fn is(&self, key: &ResourceKey) -> bool {
        self.group == key.group
            && self.kind == key.kind
            && self.name == key.name
            && (self.namespace.is_empty() || self.namespace == key.namespace)
    }
}

/// What a plan is made of.
#[derive(Debug, Clone, Default)]
pub struct Desired<'a> {
    /// What is managed.
    pub pairs: &'a [Pair],
    /// What is declared as hooks.
    pub hooks: &'a [Value],
    /// Options of the sync.
    pub options: SyncOptions,
    /// Whether extra objects are pruned.
    pub prune: bool,
    /// Whether deletions that need it have been confirmed.
    pub prune_confirmed: bool,
    /// Whether nothing is really to be done.
    pub dry_run: bool,
    /// Only these; empty: all. Hooks do not run then.
    pub only: &'a [Selected],
    /// Whether hooks are left out (`strategy: apply`).
    pub skip_hooks: bool,
    /// The destination's namespace.
    pub namespace: &'a str,
    /// What the namespace shall have, if it is made.
    pub namespace_metadata: Option<&'a NamespaceMetadata>,
    /// The namespace, if it is there.
    pub live_namespace: Option<&'a Value>,
    /// The revision that is synced, for the names of hooks.
    pub revision: &'a str,
    /// When the sync began, in seconds, for the names of hooks.
    pub started_at: i64,
    /// Objects that are as declared.
    pub in_sync: BTreeSet<ResourceKey>,
    /// Objects that are another application's, with the words for it.
    pub shared: &'a [(ResourceKey, String)],
    /// What the project does not allow, with the words for it.
    pub refused: &'a [(ResourceKey, String)],
    /// Extra objects that stay because other applications need them.
    pub kept: BTreeSet<ResourceKey>,
}

/// The plan of a sync.
pub fn plan(desired: &Desired<'_>) -> Plan {
    let options = &desired.options;
    let mut tasks = Vec::new();
    for pair in desired.pairs {
        let about = pair.target.as_ref().or(pair.live.as_ref());
        let selected = desired.only.is_empty() || desired.only.iter().any(|one| one.is(&pair.key));
        if selected && about.is_some_and(|object| hook::role(object) == Role::Managed) {
            tasks.push(managed(pair, desired));
        }
    }
    if !desired.skip_hooks && desired.only.is_empty() {
        for hook in desired.hooks {
            tasks.extend(hooks(hook, desired, Phase::is_of_sync));
        }
    }
    tasks.extend(namespace(desired));
    let is_last = |pair: &&Pair| {
        let live = pair.live.as_ref();
        options.prune_last
            || live.is_some_and(|live| annotation::has_option(live, SYNC_OPTIONS, "PruneLast=true"))
    };
    let last: BTreeSet<&ResourceKey> = desired
        .pairs
        .iter()
        .filter(is_last)
        .map(|pair| &pair.key)
        .collect();
    order::reverse_prune_waves(&mut tasks, |task| last.contains(&task.id.key));
    mark_defined(&mut tasks);
    order::sort(&mut tasks);
    let shared = desired.shared.iter().filter(|_| options.fail_on_shared_resource);
    let refused = desired.refused.iter().chain(shared);
    let refused: BTreeMap<&ResourceKey, &String> = refused.map(|(key, why)| (key, why)).collect();
    let invalid = tasks
        .iter()
        .filter_map(|task| Some((task.id.clone(), (*refused.get(&task.id.key)?).clone())));
    Plan {
        invalid: invalid.collect::<Vec<_>>(),
        tasks,
        options: options.clone(),
        dry_run: desired.dry_run,
        prune_confirmed: desired.prune_confirmed,
    }
}

/// The plan of a deletion with everything: hooks before and after, the objects in reverse waves.
pub fn plan_deletion(live: &[Value], hooks: &[Value], desired: &Desired<'_>) -> Plan {
    let mut tasks = Vec::new();
    for object in live.iter().filter(|object| !hook::is_hook(object)) {
        let own = |option: &str| annotation::has_option(object, SYNC_OPTIONS, option);
        let mut task = task(
            TaskId {
                key: ResourceKey::of(object),
                phase: Phase::Sync,
            },
            object,
            None,
        );
        task.keep = match () {
            () if own("Delete=false") => Some("ignored (no delete)"),
            () if desired.kept.contains(&task.id.key) => Some(NEEDED),
            () => None,
        };
        task.confirm = own("Delete=confirm");
        tasks.push(task);
    }
    for hook in hooks {
        tasks.extend(self::hooks(hook, desired, |phase| !phase.is_of_sync()));
    }
    order::reverse_prune_waves(&mut tasks, |_| false);
    order::sort(&mut tasks);
    Plan {
        tasks,
        options: desired.options.clone(),
        dry_run: false,
        prune_confirmed: desired.prune_confirmed,
        invalid: Vec::new(),
    }
}

fn task(id: TaskId, object: &Value, target: Option<Value>) -> Task {
    let metadata = &object["metadata"];
    let is_prune = target.is_none();
    Task {
        uid: metadata["uid"]
            .as_str()
            .filter(|_| is_prune)
            .unwrap_or_default()
            .to_owned(),
        is_going: is_prune && !metadata["deletionTimestamp"].is_null(),
        id,
        wave: hook::wave(object),
        version: key::group_version(object).1.to_owned(),
        target,
        is_hook: false,
        is_in_sync: false,
        keep: None,
        confirm: false,
        defined_here: false,
    }
}

fn managed(pair: &Pair, desired: &Desired<'_>) -> Task {
    let id = TaskId {
        key: pair.key.clone(),
        phase: Phase::Sync,
    };
    let Some(target) = &pair.target else {
        let live = pair.live.as_ref().unwrap_or(&Value::Null);
        let own = |option: &str| annotation::has_option(live, SYNC_OPTIONS, option);
        let mut task = task(id, live, None);
        task.keep = match () {
            () if !desired.prune => Some("ignored (requires pruning)"),
            () if desired.options.never_prune || own("Prune=false") => Some("ignored (no prune)"),
            () if desired.kept.contains(&pair.key) => Some(NEEDED),
            () => None,
        };
        task.confirm = desired.options.confirm_prune || own("Prune=confirm");
        return task;
    };
    let mut task = task(id, target, Some(target.clone()));
    task.is_in_sync = pair.live.is_some() && desired.in_sync.contains(&pair.key);
    task
}

/// The tasks of a hook, one for each phase. One without a name gets one that is the same whenever the plan is made.
fn hooks(hook: &Value, desired: &Desired<'_>, of: impl Fn(Phase) -> bool) -> Vec<Task> {
    let Role::Hook(phases) = hook::role(hook) else {
        return Vec::new();
    };
    let make = |phase: Phase| {
        let mut target = hook.clone();
        if key::name(&target).is_empty() {
            let revision = desired.revision.get(..7).unwrap_or(desired.revision);
            let suffix = format!("{revision}-{}-{}", phase.as_str(), desired.started_at).to_lowercase();
            let prefix = target["metadata"]["generateName"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            target["metadata"]["name"] = format!("{prefix}{suffix}").into();
        }
        let finalizers = &mut target["metadata"]["finalizers"];
        if !finalizers.is_array() {
            *finalizers = json!([]);
        }
        if let Some(list) = finalizers
            .as_array_mut()
            .filter(|list| !list.iter().any(|own| own == HOOK_FINALIZER))
        {
            list.push(HOOK_FINALIZER.into());
        }
        let id = TaskId {
            key: ResourceKey::of(&target),
            phase,
        };
        Task {
            is_hook: true,
            ..task(id, hook, Some(target))
        }
    };
    phases.into_iter().filter(|phase| of(*phase)).map(make).collect()
}

/// The task that makes the destination's namespace, or gives it what it shall have.
fn namespace(desired: &Desired<'_>) -> Option<Task> {
    let name = desired.namespace;
    let is_it = |object: &Value| key::is(object, "", "Namespace") && key::name(object) == name;
    let declared = desired
        .pairs
        .iter()
        .filter_map(|pair| pair.target.as_ref())
        .chain(desired.hooks)
        .any(is_it);
    if !desired.options.create_namespace || name.is_empty() || declared {
        return None;
    }
    let mut target = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    if let Some(metadata) = desired.namespace_metadata {
        for (field, wanted) in [
            ("labels", &metadata.labels),
            ("annotations", &metadata.annotations),
        ] {
            if !wanted.is_empty() {
                target["metadata"][field] = json!(wanted);
            }
        }
    }
    let has = |field: &str, live: &Value| {
        let wanted = target["metadata"][field].as_object();
        wanted.is_none_or(|wanted| {
            wanted
                .iter()
                .all(|(name, value)| live["metadata"][field].get(name) == Some(value))
        })
    };
    if desired
        .live_namespace
        .is_some_and(|live| has("labels", live) && has("annotations", live))
    {
        return None;
    }
    let id = TaskId {
        key: ResourceKey::of(&target),
        phase: Phase::PreSync,
    };
    Some(Task {
        // Before every other: nothing can be tried out in a namespace that is not there.
        wave: i64::MIN,
        ..task(id, &target.clone(), Some(target))
    })
}

fn mark_defined(tasks: &mut [Task]) {
    let defined: BTreeSet<(String, String)> = tasks
        .iter()
        .filter_map(|task| key::defined_kind(task.target.as_ref()?))
        .map(|(group, kind)| (group.to_owned(), kind.to_owned()))
        .collect();
    for task in tasks {
        let kind = (task.id.key.group.clone(), task.id.key.kind.clone());
        task.defined_here = defined.contains(&kind);
    }
}
