//! Which APIServices there should be, and what must be done for that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Marks what this controller may delete again; upstream's label.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Upstream's order of the groups it serves itself: group, version, priority of the group, of the version.
const PRIORITIES: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
];

/// Upstream's priorities of what comes from CRDs.
const OTHERS: (u32, u32) = (1_000, 100);

/// The aggregator does not register itself, upstream neither.
const UNREGISTERED: &str = "apiregistration.k8s.io";

/// Something to do.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Everything but the status.
    Apply { name: String, object: Value },
    /// The status.
    ApplyStatus { name: String, object: Value },
    /// What is not served any more.
    Delete { name: String },
}

/// Compares what is served with the APIServices there are. Of `unknown` group-versions it is not known whether they are
/// served; theirs stay as they are.
pub(super) fn decide(
    served: &BTreeSet<&str>,
    unknown: &BTreeSet<&str>,
    found: &[Value],
    now: &str,
) -> Vec<Step> {
    // Nothing at all is served only before discovery has been read.
    if served.is_empty() {
        return Vec::new();
    }
    let by_name: BTreeMap<&str, &Value> = found
        .iter()
        .map(|object| (text(object, "/metadata/name"), object))
        .collect();
    let mut steps = Vec::new();
    let mut names = BTreeSet::new();
    for group_version in served.union(unknown) {
        let (group, version) = group_version.rsplit_once('/').unwrap_or(("", group_version));
        if group == UNREGISTERED {
            continue;
        }
        let name = format!("{version}.{group}");
        let known = by_name.get(name.as_str()).copied();
        names.insert(name.clone());
        // A user's own registration for a Service comes first.
        if unknown.contains(group_version) || known.is_some_and(is_remote) {
            continue;
        }
        let object = desired(&name, group, version);
        if known.is_none_or(|known| {
            known["spec"] != object["spec"]
                || known["metadata"]["labels"][MANAGED] != object["metadata"]["labels"][MANAGED]
        }) {
            steps.push(Step::Apply {
                name: name.clone(),
                object,
            });
        }
        let (reason, message) = ("Local", "Local APIServices are always available");
        steps.extend(status(&name, known, "True", reason, message, now));
    }
    for (name, object) in by_name {
        if is_remote(object) {
            let message = "Fairway does not pass requests on to other API servers";
            steps.extend(status(name, Some(object), "False", "NotProxied", message, now));
        } else if !names.contains(name) && object["metadata"]["labels"].get(MANAGED).is_some() {
            steps.push(Step::Delete {
                name: name.to_owned(),
            });
        }
    }
    steps
}

fn desired(name: &str, group: &str, version: &str) -> Value {
    let built_in = PRIORITIES.iter().find(|(g, v, ..)| (*g, *v) == (group, version));
    let (of_group, of_version) = built_in.map_or(OTHERS, |(_, _, g, v)| (*g, *v));
    let managed = if built_in.is_some() { "onstart" } else { "true" };
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": name, "labels": {MANAGED: managed}},
        "spec": {"version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version},
    });
    if !group.is_empty() {
        object["spec"]["group"] = group.into();
    }
    object
}

/// The status, unless it says so already.
fn status(
    name: &str,
    known: Option<&Value>,
    is: &str,
    reason: &str,
    message: &str,
    now: &str,
) -> Option<Step> {
    let conditions = known.and_then(|known| known.pointer("/status/conditions")?.as_array());
    let says_so = conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "Available" && condition["status"] == is && condition["reason"] == reason
    });
    (!says_so).then(|| Step::ApplyStatus {
        name: name.to_owned(),
        object: json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "status": {"conditions": [{
                "type": "Available", "status": is, "reason": reason, "message": message, "lastTransitionTime": now,
            }]},
        }),
    })
}

fn is_remote(object: &Value) -> bool {
    object["spec"]["service"].is_object()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server holds after steps on what it held.
    fn after(steps: &[Step], mut found: Vec<Value>) -> Vec<Value> {
        for step in steps {
            match step {
                Step::Apply { name, object } => {
                    found.retain(|o| o["metadata"]["name"] != *name);
                    found.push(object.clone());
                }
                Step::ApplyStatus { name, object } => {
                    let known = found.iter_mut().find(|o| o["metadata"]["name"] == *name).unwrap();
                    known["status"] = object["status"].clone();
                }
                Step::Delete { name } => found.retain(|o| o["metadata"]["name"] != *name),
            }
        }
        found
    }

    fn names(found: &[Value]) -> Vec<&str> {
        let mut names: Vec<&str> = found.iter().map(|o| text(o, "/metadata/name")).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_served_is_registered_and_then_all_is_quiet() {
        let served = BTreeSet::from([
            "v1",
            "apps/v1",
            "example.com/v1beta1",
            "apiregistration.k8s.io/v1",
        ]);
        let none = BTreeSet::new();
        let found = after(&decide(&served, &none, &[], "T"), Vec::new());
        assert_eq!(names(&found), ["v1.", "v1.apps", "v1beta1.example.com"]);
        let of = |name: &str| found.iter().find(|o| o["metadata"]["name"] == name).unwrap();
        assert_eq!(
            of("v1.")["spec"],
            json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1})
        );
        assert_eq!(of("v1.apps")["metadata"]["labels"][MANAGED], "onstart");
        assert_eq!(of("v1beta1.example.com")["metadata"]["labels"][MANAGED], "true");
        assert_eq!(of("v1beta1.example.com")["spec"]["groupPriorityMinimum"], 1000);
        assert_eq!(of("v1.apps")["status"]["conditions"][0]["reason"], "Local");
        assert_eq!(decide(&served, &none, &found, "later"), []);
    }

    #[test]
    fn what_is_not_served_any_more_goes_unless_nobody_knows() {
        let both = BTreeSet::from(["v1", "example.com/v1"]);
        let none = BTreeSet::new();
        let found = after(&decide(&both, &none, &[], "T"), Vec::new());
        let one = BTreeSet::from(["v1"]);
        let gone = Step::Delete {
            name: "v1.example.com".to_owned(),
        };
        assert_eq!(decide(&one, &none, &found, "T"), [gone]);
        assert_eq!(decide(&one, &BTreeSet::from(["example.com/v1"]), &found, "T"), []);
        assert_eq!(decide(&none, &none, &found, "T"), []);
    }

    #[test]
    fn a_users_registration_stays_and_says_that_it_does_nothing() {
        let theirs = json!({
            "metadata": {"name": "v1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1", "service": {"name": "m", "namespace": "n"}},
        });
        let served = BTreeSet::from(["v1"]);
        let found = after(
            &decide(&served, &BTreeSet::new(), std::slice::from_ref(&theirs), "T"),
            vec![theirs],
        );
        let kept = found
            .iter()
            .find(|o| o["metadata"]["name"] == "v1.metrics.k8s.io")
            .unwrap();
        assert_eq!(kept["status"]["conditions"][0]["status"], "False");
        assert_eq!(decide(&served, &BTreeSet::new(), &found, "T"), []);
        let changed = json!({
            "metadata": {"name": "v1.", "labels": {MANAGED: "onstart"}}, "spec": {"version": "v1"},
        });
        assert!(
            matches!(&decide(&served, &BTreeSet::new(), &[changed], "T")[0], Step::Apply { name, .. } if name == "v1.")
        );
    }
}
