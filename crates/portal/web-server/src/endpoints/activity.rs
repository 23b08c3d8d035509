//! Who did what in a workspace, out of the end of the audit log.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// What has changed nothing.
const READING: [&str; 4] = ["get", "list", "watch", "connect"];
/// Groups and resources that are written all the time and tell nobody anything.
const NOISE: [(&str, &str); 4] = [
    ("coordination.k8s.io", "leases"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("fairway.dev", "sessions"),
];
/// Groups whose objects are questions, and questions that are subresources or kinds of other groups.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
const ASKED: [&str; 2] = ["explanations", "plan"];
/// Parts of the platform, which carry out what others wanted.
const PLATFORM: [&str; 4] = [
    "system:serviceaccount:kube-system:",
    "system:apiserver",
    "system:node:",
    "system:kube-",
];

/// Something that somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deed {
    /// When, RFC 3339.
    pub time: String,
    /// Who.
    pub user: String,
    /// `create`, `update`, `patch`, `delete`, ...
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural resource.
    pub resource: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty outside of any.
    pub namespace: String,
    /// Name of the object; empty if the server chose it.
    pub name: String,
    /// What was answered.
    pub code: u64,
}

/// What must be allowed to see a deed: group, resource and namespace of its object.
pub type Object = (String, String, String);

impl Deed {
    /// What must be allowed to see it.
    pub fn object(&self) -> Object {
        (self.group.clone(), self.resource.clone(), self.namespace.clone())
    }
}

/// The deeds in the end of a log, the newest first, also those that were refused: their code says so. `is_here` says whether a workspace, as a request named it, is the one meant. The
/// first line may be a part of one.
pub fn deeds(log: &[u8], is_here: impl Fn(&str) -> bool) -> Vec<Deed> {
    log.split(|byte| *byte == b'\n')
        .rev()
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter_map(|event| deed(&event, &is_here))
        .collect()
}

/// What must be allowed to see some of them, each once.
pub fn objects<'a>(deeds: impl IntoIterator<Item = &'a Deed>, most: usize) -> BTreeSet<Object> {
    let mut found = BTreeSet::new();
    for deed in deeds {
        if found.len() >= most {
            break;
        }
        found.insert(deed.object());
    }
    found
}

fn deed(event: &Value, is_here: impl Fn(&str) -> bool) -> Option<Deed> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let workspace = text("/requestURI")
        .strip_prefix("/clusters/")
        .and_then(|rest| rest.split(['/', '?']).next())
        .unwrap_or("root");
    let (verb, user) = (text("/verb"), text("/user/username"));
    let code = event.pointer("/responseStatus/code")?.as_u64()?;
    let (group, resource) = (text("/objectRef/apiGroup"), text("/objectRef/resource"));
    let is_told = text("/stage") == "ResponseComplete"
        && !resource.is_empty()
        && !READING.contains(&verb)
        && !NOISE.contains(&(group, resource))
        && !QUESTIONS.contains(&group)
        && !ASKED
            .iter()
            .any(|it| *it == resource || *it == text("/objectRef/subresource"))
        && !PLATFORM.iter().any(|prefix| user.starts_with(prefix))
        && !text("/requestURI").contains("dryRun=");
    (is_told && is_here(workspace)).then(|| Deed {
        time: text("/stageTimestamp").to_owned(),
        user: user.to_owned(),
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: text("/objectRef/subresource").to_owned(),
        namespace: text("/objectRef/namespace").to_owned(),
        name: text("/objectRef/name").to_owned(),
        code,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(uri: &str, verb: &str, user: &str, object: &Value, code: u64) -> String {
        json!({
            "stage": "ResponseComplete", "requestURI": uri, "verb": verb, "user": {"username": user}, "objectRef": object,
            "responseStatus": {"code": code}, "stageTimestamp": "2026-11-18T08:00:00Z",
        })
        .to_string()
    }

    #[test]
    fn deeds_of_people_are_told_and_nothing_else() {
        let vm = json!({"apiGroup": "kubevirt.io", "resource": "virtualmachines", "namespace": "a", "name": "web"});
        let lease = json!({"apiGroup": "coordination.k8s.io", "resource": "leases", "name": "x"});
        let review = json!({"apiGroup": "authorization.k8s.io", "resource": "selfsubjectrulesreviews"});
        let plan = json!({"apiGroup": "argoproj.io", "resource": "applications", "name": "web", "subresource": "plan"});
        let here = "/clusters/root:acme/apis/kubevirt.io/v1/x";
        let controller = "system:serviceaccount:kube-system:fairway-x";
        let log = [
            "half of a line\"}".to_owned(),
            line(here, "create", "acme/alice", &vm, 201),
            line(here, "get", "acme/alice", &vm, 200),
            line(here, "patch", controller, &vm, 200),
            line(here, "patch", "acme/alice", &lease, 200),
            line(here, "create", "acme/alice", &review, 201),
            line(here, "create", "acme/alice", &plan, 201),
            line(here, "delete", "acme/alice", &vm, 403),
            line("/clusters/root:other/x", "create", "other/bob", &vm, 201),
            line("/api/v1/x", "create", "root/admin", &vm, 201),
            line(&format!("{here}?dryRun=All"), "create", "acme/alice", &vm, 201),
            line(here, "delete", "acme/bob", &vm, 200),
            String::new(),
        ]
        .join("\n");
        let found = deeds(log.as_bytes(), |workspace| workspace == "root:acme");
        let told: Vec<_> = found
            .iter()
            .map(|it| (it.user.as_str(), it.verb.as_str(), it.code))
            .collect();
        assert_eq!(
            told,
            [
                ("acme/bob", "delete", 200),
                ("acme/alice", "delete", 403),
                ("acme/alice", "create", 201)
            ]
        );
        let root = deeds(log.as_bytes(), |workspace| workspace == "root");
        assert_eq!(root.len(), 1, "without a workspace it is the root");
        let kinds = objects(&found, 8);
        assert_eq!(kinds.len(), 1);
        assert!(kinds.contains(&(
            "kubevirt.io".to_owned(),
            "virtualmachines".to_owned(),
            "a".to_owned()
        )));
        assert!(objects(&found, 0).is_empty());
    }
}
