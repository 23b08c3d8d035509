//! What the server says of what a run will have deployed: each object is sent to it as a dry run, as if what the same run makes before it
//! were there.

use std::collections::BTreeSet;

use fairway_controller::Requests;
use serde_json::{Value, json};

use super::Foreseen;
use crate::deployed::Manifest;
use crate::discovery::{Discovery, Resource};
use crate::ports::Unrendered;

/// In whose name it is tried.
const MANAGER: &str = "fairway-dry-run&dryRun=All";
/// What is said of files that no step of the run has deployed.
const UNREAD: &str = "no Application of this run deploys it";

/// What is said, and the objects that were let pass, as they would be.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    pub(super) found: Vec<Value>,
    pub(super) accepted: Vec<Value>,
}

/// One object with what is said of it.
pub(super) fn shown(object: &Value, verdict: &Result<(), String>) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"],
        "namespace": object["metadata"]["namespace"], "allowed": verdict.is_ok(),
        "message": verdict.as_ref().err(),
    })
}

fn unjudged(object: &Value, why: &str) -> Value {
    let mut unknown = shown(object, &Ok(()));
    unknown["allowed"] = Value::Null;
    unknown["message"] = why.into();
    unknown
}

/// What comes into being on the way.
#[derive(Debug, Default, PartialEq)]
struct Made {
    namespaces: BTreeSet<String>,
    /// Groups and kinds.
    kinds: BTreeSet<(String, String)>,
}

impl Made {
    fn of(foreseen: &Foreseen) -> Self {
        let mut made = Self::default();
        let at_once = foreseen
            .objects
            .iter()
            .filter(|it| it["allowed"] == true && it["kind"] == "Namespace");
        made.namespaces
            .extend(at_once.filter_map(|it| Some(it["name"].as_str()?.to_owned())));
        for Manifest { object, .. } in &foreseen.manifests {
            let spec = &object["spec"];
            match object["kind"].as_str() {
                Some("Namespace") => made
                    .namespaces
                    .extend(object["metadata"]["name"].as_str().map(str::to_owned)),
                Some("CustomResourceDefinition") => {
                    let names = spec["group"].as_str().zip(spec["names"]["kind"].as_str());
                    made.kinds
                        .extend(names.map(|(group, kind)| (group.to_owned(), kind.to_owned())));
                }
                _ => {}
            }
        }
        made
    }

    fn defines(&self, object: &Value) -> bool {
        let version = object["apiVersion"].as_str().unwrap_or("");
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let kind = object["kind"].as_str().unwrap_or("");
        self.kinds.contains(&(group.to_owned(), kind.to_owned()))
    }
}

/// The object as a sync writes it: in the namespace of the Application if it names none, and in none if it can be in none.
fn placed(manifest: &Manifest, resource: &Resource) -> Value {
    let mut object = manifest.object.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    let is_named = metadata
        .get("namespace")
        .is_some_and(|it| it.as_str() != Some(""));
    match resource.namespaced {
        true if !is_named => {
            metadata.insert("namespace".to_owned(), manifest.namespace.as_str().into());
        }
        false => {
            metadata.shift_remove("namespace");
        }
        true => {}
    }
    object
}

/// Asks the server about everything that the run will have deployed.
pub(super) async fn verdicts(requests: &Requests, foreseen: &Foreseen) -> Verdicts {
    let mut discovery = Discovery::default();
    let made = Made::of(foreseen);
    let mut verdicts = Verdicts::default();
    for (application, why) in &foreseen.failed {
        let said = match why {
            Unrendered::Wrong(why) => {
                shown(application, &Err(format!("its files cannot be rendered: {why}")))
            }
            Unrendered::Unknown(why) => unjudged(
                application,
                &format!("what it deploys is known only when it is synced: {why}"),
            ),
        };
        verdicts.found.push(said);
    }
    for manifest in &foreseen.manifests {
        match discovery.of(requests, &manifest.object).await {
            Ok(resource) => judge(requests, &made, manifest, &resource, &mut verdicts).await,
            Err(_) if made.defines(&manifest.object) => {
                let why = "its kind is defined by the same run";
                verdicts.found.push(unjudged(&manifest.object, why));
            }
            Err(why) => verdicts.found.push(shown(&manifest.object, &Err(why))),
        }
    }
    verdicts
        .found
        .extend(foreseen.unread.iter().map(|object| unjudged(object, UNREAD)));
    verdicts
}

async fn judge(
    requests: &Requests,
    made: &Made,
    manifest: &Manifest,
    resource: &Resource,
    verdicts: &mut Verdicts,
) {
    let object = placed(manifest, resource);
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or("");
    let (name, namespace) = (text("name"), text("namespace"));
    let missing = resource.namespaced
        && made.namespaces.contains(namespace)
        && matches!(
            requests.get(&format!("/api/v1/namespaces/{namespace}")).await,
            Ok(None)
        );
    // The server judges as if the namespace were there: the same run makes it.
    let presumed = if missing { "&presumeNamespace=true" } else { "" };
    let collection = resource.collection(namespace);
    let judged = match name {
        // The server gives it a name.
        "" => {
            requests
                .post(&format!("{collection}?fieldManager={MANAGER}{presumed}"), &object)
                .await
        }
        name => {
            requests
                .apply(
                    &format!("{collection}/{name}"),
                    &object,
                    &format!("{MANAGER}{presumed}"),
                    true,
                )
                .await
        }
    };
    let verdict = judged.map(|object| verdicts.accepted.push(object));
    let said = shown(&object, &verdict.map_err(|failure| failure.sentence()));
    verdicts.found.push(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(namespaced: bool) -> Resource {
        Resource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "things".to_owned(),
            namespaced,
        }
    }

    #[test]
    fn objects_are_where_a_sync_writes_them() {
        for (metadata, namespaced, expected) in [
            (
                json!({"name": "a"}),
                true,
                json!({"name": "a", "namespace": "apps"}),
            ),
            (
                json!({"name": "a", "namespace": ""}),
                true,
                json!({"name": "a", "namespace": "apps"}),
            ),
            (
                json!({"name": "a", "namespace": "own"}),
                true,
                json!({"name": "a", "namespace": "own"}),
            ),
            (
                json!({"name": "a", "namespace": "own"}),
                false,
                json!({"name": "a"}),
            ),
        ] {
            let manifest = Manifest {
                object: json!({ "metadata": metadata }),
                namespace: "apps".to_owned(),
            };
            let found = placed(&manifest, &resource(namespaced));
            assert_eq!(found["metadata"], expected, "{metadata} {namespaced}");
        }
    }

    #[test]
    fn what_the_run_makes_itself_is_not_missing() {
        let manifest = |object: Value| Manifest {
            object,
            namespace: String::new(),
        };
        let foreseen = Foreseen {
            objects: vec![
                json!({"kind": "Namespace", "name": "first", "allowed": true}),
                json!({"kind": "Namespace", "name": "refused", "allowed": false}),
                json!({"kind": "ConfigMap", "name": "other", "allowed": true}),
            ],
            manifests: vec![
                manifest(json!({"kind": "Namespace", "metadata": {"name": "second"}})),
                manifest(
                    json!({"kind": "CustomResourceDefinition", "spec": {"group": "example.com", "names": {"kind": "Cat"}}}),
                ),
            ],
            ..Foreseen::default()
        };
        let made = Made::of(&foreseen);
        let names: Vec<&str> = made.namespaces.iter().map(String::as_str).collect();
        assert_eq!(names, ["first", "second"]);
        for (version, kind, expected) in [
            ("example.com/v1", "Cat", true),
            ("example.com/v1", "Dog", false),
            ("v1", "Cat", false),
        ] {
            let object = json!({"apiVersion": version, "kind": kind});
            assert_eq!(made.defines(&object), expected, "{object}");
        }
    }
}
