//! Who may say what of a Voyage. The server writes who started it; nobody can say so of himself or of others.

use std::sync::Arc;

use fairway_admission::{Admission, Operation, Refusal, Request, Verdict};
use fairway_api::{Definition, fairway::VOYAGE};
use serde_json::{Value, json};

use crate::USER;
use crate::voyage::FINALIZER;

const WEBHOOK: &str = "voyages.fairway.dev";

/// The admission of a kind, if it is ours.
pub fn of(definition: &Definition) -> Option<Arc<dyn Admission>> {
    let is_ours = definition.group() == VOYAGE.group && definition.kind().plural == VOYAGE.plural;
    is_ours.then(|| Arc::new(Voyages) as Arc<dyn Admission>)
}

struct Voyages;

impl Admission for Voyages {
    fn complete(&self, request: &Request<'_>, object: &mut Value) -> Verdict {
        if request.subresource.is_some() || request.operation == Operation::Delete {
            return Ok(Vec::new());
        }
        if request.operation == Operation::Create {
            hold(object);
        }
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
            return Ok(Vec::new());
        };
        let old = request.old.map(|old| &old["spec"]);
        let started = match old {
            None => Some(asker(request)),
            // Whoever tries again acts with what he is now, not with what he was: groups that he has left count no more.
            Some(old) if is_retried(old, spec) && old["requestedBy"]["username"] == request.user => {
                Some(asker(request))
            }
            Some(old) => old.get("requestedBy").cloned(),
        };
        set(spec, "requestedBy", started);
        // Whoever wants it gone answers for that with his own rights.
        let wants = |spec: &Value| spec["decommission"] == true;
        let was_wanted = old.is_some_and(wants);
        let is_wanted = spec.get("decommission") == Some(&Value::Bool(true));
        let ended = match (was_wanted, is_wanted) {
            (false, true) => Some(asker(request)),
            (true, true) => old.and_then(|old| old.get("decommissionedBy")).cloned(),
            _ => None,
        };
        set(spec, "decommissionedBy", ended);
        Ok(Vec::new())
    }

    fn judge(&self, request: &Request<'_>, object: &Value) -> Verdict {
        let refuse = |why: String| Err(Refusal::invalid(WEBHOOK, why, Vec::new()));
        if request.subresource == Some("status") {
            // What a run has made is taken back with its user's rights: nobody else may say what that is.
            return match request.user == USER && !request.is_local_user {
                true => Ok(Vec::new()),
                false => refuse("the status of a Voyage is written by the scaffolder alone".to_owned()),
            };
        }
        let Some(old) = request.old.filter(|_| request.operation == Operation::Update) else {
            return Ok(Vec::new());
        };
        let (was, is) = (&old["spec"], &object["spec"]);
        for field in ["template", "values", "secretRef"] {
            if was[field] != is[field] {
                return refuse(format!(
                    "spec.{field} cannot be changed: a run is what it was started as; start another"
                ));
            }
        }
        let number = |spec: &Value| attempt(spec.get("attempt"));
        let started = is["requestedBy"]["username"].as_str().unwrap_or("");
        if number(is) > number(was) && started != request.user {
            return refuse(format!(
                "only {started} can try this again, since it acts with the rights of who started it; start another"
            ));
        }
        if number(is) < number(was) {
            return refuse("attempts cannot be taken back".to_owned());
        }
        // A wish that came to nothing can be taken back, so that somebody else can wish the same with his rights.
        let has_begun = matches!(
            old["status"]["phase"].as_str(),
            Some("Decommissioning" | "Decommissioned")
        );
        if was["decommission"] == true && is["decommission"] != true && has_begun {
            return refuse("decommissioning has begun and cannot be taken back".to_owned());
        }
        Ok(Vec::new())
    }
}

/// A Voyage stays until what it had begun is taken back.
fn hold(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut()
        && !all.iter().any(|it| it == FINALIZER)
    {
        all.push(FINALIZER.into());
    }
}

fn attempt(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or(0)
}

fn is_retried(old: &Value, spec: &serde_json::Map<String, Value>) -> bool {
    attempt(spec.get("attempt")) > attempt(old.get("attempt"))
}

fn set(spec: &mut serde_json::Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => spec.insert(field.to_owned(), value),
        None => spec.shift_remove(field),
    };
}

fn asker(request: &Request<'_>) -> Value {
    let mut person = json!({"username": request.user});
    let subject = request.subject;
    if !subject.uid.is_empty() {
        person["uid"] = subject.uid.into();
    }
    if !subject.groups.is_empty() {
        person["groups"] = subject.groups.into();
    }
    if let Some(extra) = subject.extra.filter(|extra| !extra.is_empty()) {
        person["extra"] = json!(extra);
    }
    person
}

#[cfg(test)]
mod tests {
    use fairway_admission::{Account, Action, Place, Resource, Subject, World};

    use super::*;

    struct Empty;

    impl World for Empty {
        fn get(&self, _: Place, _: Resource, _: &str, _: &str) -> Option<Value> {
            None
        }
        fn list(&self, _: Place, _: Resource, _: Option<&str>, _: usize) -> Vec<Value> {
            Vec::new()
        }
        fn may(&self, _: &Action<'_>, _: Option<Account<'_>>) -> bool {
            false
        }
        fn name_suffix(&self) -> String {
            String::new()
        }
    }

    fn request<'r>(
        user: &'r str,
        groups: &'r [String],
        old: Option<&'r Value>,
        subresource: Option<&'r str>,
    ) -> Request<'r> {
        Request {
            operation: if old.is_some() {
                Operation::Update
            } else {
                Operation::Create
            },
            subresource,
            old,
            namespace: "default",
            user,
            is_local_user: false,
            subject: Subject {
                uid: "",
                groups,
                extra: None,
            },
            now: "2026-01-01T00:00:00Z",
            world: &Empty,
        }
    }

    #[test]
    fn nobody_says_himself_who_he_is() {
        let groups = ["dev".to_owned()];
        let forged = json!({"username": "root/admin", "groups": ["system:masters"]});
        let mut object =
            json!({"spec": {"template": "t", "requestedBy": forged, "decommissionedBy": forged}});
        Voyages
            .complete(&request("ann", &groups, None, None), &mut object)
            .unwrap();
        assert_eq!(
            object["spec"]["requestedBy"],
            json!({"username": "ann", "groups": ["dev"]})
        );
        assert_eq!(object["spec"].get("decommissionedBy"), None);
        // Nor later, nor in another's name.
        let old = object.clone();
        object["spec"]["requestedBy"] = forged;
        object["spec"]["decommission"] = json!(true);
        Voyages
            .complete(&request("bob", &[], Some(&old), None), &mut object)
            .unwrap();
        assert_eq!(object["spec"]["requestedBy"]["username"], "ann");
        assert_eq!(object["spec"]["decommissionedBy"], json!({"username": "bob"}));
    }

    #[test]
    fn whoever_tries_again_does_so_with_the_groups_of_now() {
        let old =
            json!({"spec": {"template": "t", "requestedBy": {"username": "ann", "groups": ["admins"]}}});
        let now = ["dev".to_owned()];
        for (user, attempt, expected) in [
            ("ann", 1, json!({"username": "ann", "groups": ["dev"]})),
            ("ann", 0, json!({"username": "ann", "groups": ["admins"]})),
            // He is refused; until then nothing is his.
            ("bob", 1, json!({"username": "ann", "groups": ["admins"]})),
        ] {
            let mut object = old.clone();
            object["spec"]["attempt"] = json!(attempt);
            let request = request(user, &now, Some(&old), None);
            Voyages.complete(&request, &mut object).unwrap();
            assert_eq!(object["spec"]["requestedBy"], expected, "{user} {attempt}");
        }
    }

    #[test]
    fn a_voyage_is_held_from_its_beginning() {
        let mut object = json!({"metadata": {"finalizers": ["other"]}, "spec": {}});
        for _ in 0..2 {
            Voyages
                .complete(&request("ann", &[], None, None), &mut object)
                .unwrap();
            assert_eq!(object["metadata"]["finalizers"], json!(["other", FINALIZER]));
        }
        // Whoever lets go of it later is not held back.
        let old = object.clone();
        object["metadata"]["finalizers"] = json!([]);
        Voyages
            .complete(&request("ann", &[], Some(&old), None), &mut object)
            .unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!([]));
    }

    #[test]
    fn a_wish_that_came_to_nothing_can_be_wished_by_somebody_else() {
        for (phase, allowed) in [
            ("Failed", true),
            ("Cancelled", true),
            ("Succeeded", true),
            ("Decommissioning", false),
            ("Decommissioned", false),
        ] {
            let by = json!({"username": "bob"});
            let old = json!({
                "spec": {"template": "t", "requestedBy": {"username": "ann"}, "decommission": true, "decommissionedBy": by},
                "status": {"phase": phase},
            });
            let mut object = old.clone();
            object["spec"]["decommission"] = json!(false);
            let withdraw = request("cid", &[], Some(&old), None);
            Voyages.complete(&withdraw, &mut object).unwrap();
            assert_eq!(Voyages.judge(&withdraw, &object).is_ok(), allowed, "{phase}");
            assert_eq!(object["spec"].get("decommissionedBy"), None);
            let old = object.clone();
            object["spec"]["decommission"] = json!(true);
            Voyages
                .complete(&request("cid", &[], Some(&old), None), &mut object)
                .unwrap();
            assert_eq!(object["spec"]["decommissionedBy"]["username"], "cid");
        }
    }

    #[test]
    fn runs_are_what_they_were_started_as() {
        let old = json!({"spec": {"template": "t", "values": {"a": 1}, "requestedBy": {"username": "ann"}}});
        let cases: [(&str, Option<&str>, &str, Value, bool); 8] = [
            ("/spec/values", None, "ann", json!({"a": 2}), false),
            ("/spec/template", None, "ann", json!("u"), false),
            ("/spec/attempt", None, "ann", json!(1), true),
            ("/spec/attempt", None, "bob", json!(1), false),
            ("/spec/cancel", None, "bob", json!(true), true),
            ("/spec/decommission", None, "bob", json!(true), true),
            (
                "/status",
                Some("status"),
                "ann",
                json!({"phase": "Succeeded"}),
                false,
            ),
            (
                "/status",
                Some("status"),
                USER,
                json!({"phase": "Succeeded"}),
                true,
            ),
        ];
        for (pointer, subresource, user, value, allowed) in cases {
            let mut object = old.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value;
            let verdict = Voyages.judge(&request(user, &[], Some(&old), subresource), &object);
            assert_eq!(verdict.is_ok(), allowed, "{pointer} by {user}: {verdict:?}");
        }
    }
}
