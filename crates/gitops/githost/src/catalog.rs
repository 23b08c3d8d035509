//! `Repository` objects: which repositories exist, and what each may hold. Types here are views on what is acted on.

use std::time::Duration;

use fairway_controller::Json;
use fairway_kernel_scalar::quantity::Quantity;
use fairway_text_gotext::duration;
use kube::Client;
use kube::api::Api;
use kube::core::ApiResource;
use serde_json::Value;

/// The API group.
pub const GROUP: &str = "fairway.dev";
/// The resource.
pub const PLURAL: &str = "repositories";
/// The branch of a repository that names none.
pub const DEFAULT_BRANCH: &str = "main";
/// What a push may bring at most if the object does not say.
const MAX_PUSH: u64 = 2 << 30;
/// How large a repository may become if the object does not say.
const MAX_SIZE: u64 = 10 << 30;
/// How large a file may be if the object does not say.
const MAX_FILE: u64 = 100 << 20;
/// How often mirrors look if the object does not say, and at most.
const MIRROR_INTERVAL: Duration = Duration::from_secs(180);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);

/// The resource as clients name it.
pub fn resource() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: format!("{GROUP}/v1alpha1"),
        kind: "Repository".to_owned(),
        plural: PLURAL.to_owned(),
    }
}

/// The objects that a client sees.
pub fn api(client: Client) -> Api<Json> {
    Api::all_with(client, &resource())
}

/// A repository as its object describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The id of its workspace.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// The object's UID: one that was deleted and made again is another repository.
    pub uid: String,
    /// The object's generation.
    pub generation: i64,
    /// When the object was made.
    pub created: String,
    /// What is in it.
    pub description: String,
    /// Whether only those may read it who have the right to.
    pub is_private: bool,
    /// The branch that a clone checks out.
    pub default_branch: String,
    /// Branches that are not for everybody.
    pub protected: Vec<Protection>,
    /// What a push may bring.
    pub limits: Limits,
    /// Where its content comes from, if not from pushes.
    pub mirror: Option<Mirror>,
    /// How much a push is told about what follows from it.
    pub push_answers: PushAnswers,
}

/// A rule for branches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protection {
    /// A glob of branch names.
    pub branches: String,
    /// Whether history may be rewritten.
    pub allow_force_push: bool,
    /// Whether the branch may be deleted.
    pub allow_deletion: bool,
    /// Who may push: user names, or groups as `group:NAME`; everybody with the right to, if there are none.
    pub pushers: Vec<String>,
    /// Whether changes come by pull request only.
    pub require_pull_request: bool,
}

/// What a push may bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest file.
    pub max_file: u64,
    /// The largest pack.
    pub max_push: u64,
    /// The largest repository.
    pub max_size: u64,
    /// Globs of which every changed path must match one; none: any path.
    pub paths: Vec<String>,
    /// Whether manifests must render and be admitted.
    pub must_render: bool,
}

/// Another repository that this one follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Its address.
    pub url: String,
    /// The namespace and name of the Secret with credentials.
    pub secret: Option<(String, String)>,
    /// How often to look.
    pub interval: Duration,
}

/// How much a push is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushAnswers {
    /// Everything.
    Full,
    /// The outcome.
    Brief,
    /// Nothing.
    Off,
}

impl Wanted {
    /// Reads an object of a workspace.
    pub fn read(workspace: &str, object: &Value) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or("").to_owned()
        };
        let default_branch = match text("/spec/defaultBranch") {
            named if fairway_gitops_git::branch_problem(&named).is_none() => named,
            _ => DEFAULT_BRANCH.to_owned(),
        };
        Self {
            workspace: workspace.to_owned(),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            generation: object
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or(0),
            created: text("/metadata/creationTimestamp"),
            description: text("/spec/description"),
            is_private: is_true(object, "/spec/private"),
            default_branch,
            protected: items(object, "/spec/protectedBranches").map(protection).collect(),
            limits: limits(object),
            mirror: mirror(object),
            push_answers: match text("/spec/pushAnswers").as_str() {
                "Off" => PushAnswers::Off,
                "Brief" => PushAnswers::Brief,
                _ => PushAnswers::Full,
            },
        }
    }
}

fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = object.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

fn texts(object: &Value, pointer: &str) -> Vec<String> {
    items(object, pointer)
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn protection(object: &Value) -> Protection {
    Protection {
        branches: object["name"].as_str().unwrap_or("").to_owned(),
        allow_force_push: is_true(object, "/allowForcePush"),
        allow_deletion: is_true(object, "/allowDeletion"),
        pushers: texts(object, "/pushers"),
        require_pull_request: is_true(object, "/requirePullRequest"),
    }
}

fn limits(object: &Value) -> Limits {
    let bytes = |field: &str, default: u64| {
        let found = object.pointer(&format!("/spec/limits/{field}"));
        let found = found
            .and_then(Quantity::from_value)
            .map(|quantity| quantity.value());
        found
            .and_then(|value| u64::try_from(value).ok())
            .unwrap_or(default)
    };
    Limits {
        max_file: bytes("maxFileSize", MAX_FILE),
        max_push: bytes("maxPushSize", MAX_PUSH),
        max_size: bytes("maxSize", MAX_SIZE),
        paths: texts(object, "/spec/limits/paths"),
        must_render: is_true(object, "/spec/limits/mustRender"),
    }
}

fn mirror(object: &Value) -> Option<Mirror> {
    let mirror = object.pointer("/spec/mirror")?;
    let secret = mirror.get("secretRef").and_then(|reference| {
        let namespace = reference["namespace"].as_str().unwrap_or("argocd");
        Some((namespace.to_owned(), reference["name"].as_str()?.to_owned()))
    });
    let interval = mirror["interval"].as_str().and_then(duration::span);
    Some(Mirror {
        url: mirror["url"].as_str()?.to_owned(),
        secret,
        interval: interval.unwrap_or(MIRROR_INTERVAL).max(SHORTEST_INTERVAL),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read() {
        let wanted = Wanted::read(
            "abc",
            &json!({
                "metadata": {"name": "app", "uid": "u", "generation": 3},
                "spec": {
                    "description": "d", "private": true, "defaultBranch": "trunk", "pushAnswers": "Off",
                    "protectedBranches": [{"name": "release/*", "allowForcePush": true, "pushers": ["a", "group:b"]}],
                    "limits": {"maxFileSize": "1Mi", "maxPushSize": 5, "maxSize": "1G", "paths": ["apps/**"], "mustRender": true},
                    "mirror": {"url": "https://example.com/x", "interval": "1m30s", "secretRef": {"name": "s", "namespace": "n"}},
                },
            }),
        );
        assert_eq!((&*wanted.name, &*wanted.uid, wanted.generation), ("app", "u", 3));
        assert!(wanted.is_private && wanted.push_answers == PushAnswers::Off);
        assert_eq!(wanted.default_branch, "trunk");
        assert_eq!(wanted.protected[0].pushers, ["a", "group:b"]);
        assert_eq!(
            (
                wanted.limits.max_file,
                wanted.limits.max_push,
                wanted.limits.max_size
            ),
            (1 << 20, 5, 1_000_000_000)
        );
        let mirror = wanted.mirror.unwrap();
        assert_eq!(
            (mirror.interval, mirror.secret),
            (Duration::from_secs(90), Some(("n".to_owned(), "s".to_owned())))
        );
    }

    #[test]
    fn what_an_object_does_not_say_has_a_default() {
        let wanted = Wanted::read(
            "root",
            &json!({"metadata": {"name": "a"}, "spec": {"defaultBranch": "a..b"}}),
        );
        assert!(!wanted.is_private && wanted.mirror.is_none() && wanted.protected.is_empty());
        assert_eq!(
            (&*wanted.default_branch, wanted.limits.max_file),
            ("main", MAX_FILE)
        );
        assert_eq!(wanted.push_answers, PushAnswers::Full);
    }
}
