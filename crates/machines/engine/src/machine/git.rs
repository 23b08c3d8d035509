//! Whether a change of a machine's spec came from Git.
//!
//! Each field says who wrote it last: `managedFields`. Where that is not clear, because a field is gone, several hold parts
//! of a list, or a change was taken back, whoever wrote the spec last did it.

use serde_json::Value;

use crate::objects::{items, text};

/// Whoever syncs from Git writes in this name.
const GIT: &str = "argocd-controller";

/// The parts of a spec from which instances are made.
const PARTS: [&str; 3] = ["template", "instancetype", "preference"];

/// Given that an instance would be another one if it were started now: whether Git says so. What was changed while the
/// guest runs is no difference any more.
pub(crate) fn is_change_from_git(vm: &Value, started: &Value, vmi: &Value) -> bool {
    let current = &vm["spec"];
    let mut paths = Vec::new();
    for part in PARTS {
        let (before, after) = (without_revision(&started[part]), without_revision(&current[part]));
        differences(&before, &after, &mut vec![part.to_owned()], &mut paths);
    }
    let lacks = |path: &&Vec<String>| match path.as_slice() {
        [template, spec, rest @ ..] if template == "template" && spec == "spec" => {
            at(&current["template"]["spec"], rest) != at(&vmi["spec"], rest)
        }
        _ => true,
    };
    let mut paths = paths.iter().filter(lacks).peekable();
    match paths.peek() {
        Some(_) => paths.any(|path| is_gits(vm, path)),
        None => is_gits(vm, &[]),
    }
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Which revision of a size is used is written down by us, never by people.
fn without_revision(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("revisionName");
    }
    value
}

/// Paths at which two values differ, as deep as both are objects.
fn differences(before: &Value, after: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        found.push(path.clone());
        return;
    };
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        path.push(key.clone());
        let (old, new) = (
            old.get(key).unwrap_or(&Value::Null),
            new.get(key).unwrap_or(&Value::Null),
        );
        differences(old, new, path, found);
        path.pop();
    }
}

fn is_gits(vm: &Value, path: &[String]) -> bool {
    let writers = || items(vm, "/metadata/managedFields").filter(|it| text(it, "/subresource").is_empty());
    let holders: Vec<&Value> = writers().filter(|it| holds(it, path)).collect();
    let candidates = match holders.is_empty() {
        false => holders,
        true => writers().filter(|it| holds(it, &[])).collect(),
    };
    let newest = candidates.iter().map(|it| text(it, "/time")).max();
    candidates
        .iter()
        .any(|it| Some(text(it, "/time")) == newest && text(it, "/manager") == GIT)
}

/// Whether an entry has something at a path of the spec, or the whole of something that the path is in.
fn holds(entry: &Value, path: &[String]) -> bool {
    let Some(mut fields) = entry.pointer("/fieldsV1/f:spec") else {
        return false;
    };
    for name in path {
        if fields.as_object().is_some_and(serde_json::Map::is_empty) {
            return true;
        }
        match fields.get(format!("f:{name}")) {
            Some(below) => fields = below,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vm(managed: Value, spec: Value) -> Value {
        json!({"metadata": {"managedFields": managed}, "spec": spec})
    }

    fn entry(manager: &str, time: &str, spec: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:spec": spec}})
    }

    fn memory(guest: &str) -> Value {
        json!({"template": {"spec": {"domain": {"memory": {"guest": guest}}}}})
    }

    #[test]
    fn who_changed_a_machine() {
        let guest = json!({"f:template": {"f:spec": {"f:domain": {"f:memory": {"f:guest": {}}}}}});
        let whole = json!({"f:template": {}});
        let strategy = json!({"f:runStrategy": {}});
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
        let status = json!({
            "manager": GIT, "time": late, "subresource": "status", "fieldsV1": {"f:spec": guest},
        });
        let cases = [
            (
                "Git holds what changed",
                json!([entry(GIT, early, guest.clone())]),
                true,
            ),
            (
                "a person holds it",
                json!([entry("kubectl-edit", early, guest.clone())]),
                false,
            ),
            (
                "Git wrote something else afterwards",
                json!([
                    entry("kubectl-edit", early, guest.clone()),
                    entry(GIT, late, strategy.clone())
                ]),
                false,
            ),
            (
                "a person wrote something else afterwards",
                json!([
                    entry(GIT, early, guest.clone()),
                    entry("kubectl-edit", late, strategy.clone())
                ]),
                true,
            ),
            ("Git holds all of it", json!([entry(GIT, early, whole)]), true),
            (
                "both hold it, and a person was last",
                json!([
                    entry(GIT, early, guest.clone()),
                    entry("kubectl-edit", late, guest)
                ]),
                false,
            ),
            (
                "nobody holds it, and Git was last",
                json!([
                    entry("kubectl-edit", early, strategy.clone()),
                    entry(GIT, late, strategy)
                ]),
                true,
            ),
            ("only the status", json!([status]), false),
            ("nobody says anything", json!([]), false),
        ];
        for (name, managed, expected) in cases {
            let vm = vm(managed, memory("2Gi"));
            assert_eq!(
                is_change_from_git(&vm, &memory("1Gi"), &json!({})),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn what_counts_as_a_change() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
        let sized = json!([
            entry(GIT, early, json!({"f:instancetype": {}})),
            entry("kubectl-edit", late, json!({"f:runStrategy": {}})),
        ]);
        let started =
            json!({"runStrategy": "Halted", "instancetype": {"name": "small", "revisionName": "r"}});
        let other = json!({"runStrategy": "Always", "instancetype": {"name": "large"}});
        assert!(is_change_from_git(
            &vm(sized.clone(), other),
            &started,
            &json!({})
        ));
        let same = json!({"runStrategy": "Always", "instancetype": {"name": "small"}});
        assert!(
            !is_change_from_git(&vm(sized, same), &started, &json!({})),
            "nothing differs, and a person was last"
        );
        let both = json!([
            entry(
                GIT,
                early,
                json!({"f:template": {"f:spec": {"f:domain": {"f:memory": {"f:guest": {}}}}}})
            ),
            entry(
                "kubectl-edit",
                late,
                json!({"f:template": {"f:spec": {"f:hostname": {}}}})
            ),
        ]);
        let mut changed = memory("2Gi");
        changed["template"]["spec"]["hostname"] = json!("web");
        let grown = json!({"spec": {"domain": {"memory": {"guest": "2Gi"}}}});
        let vm = vm(both, changed);
        assert!(
            !is_change_from_git(&vm, &memory("1Gi"), &grown),
            "the instance has what Git says"
        );
        assert!(is_change_from_git(&vm, &memory("1Gi"), &json!({})));
    }
}
