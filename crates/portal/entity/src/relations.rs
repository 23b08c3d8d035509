//! Relations: what an entity says of others becomes two, one on each side.

use serde_json::Value;

use crate::InputError;
use crate::model::{Link, model_of};
use crate::reference::EntityRef;

/// References in one field of an entity. More than anybody writes, and what one entity can put on others.
const MAX_TARGETS: usize = 1000;

/// One direction of a relation, by canonical references.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    /// The entity that shows it.
    pub source: String,
    /// `ownedBy`, ...
    pub kind: &'static str,
    /// The entity that it leads to, which need not be there.
    pub target: String,
}

/// The relations that follow from an entity, those of others among them.
pub fn emitted(entity: &Value) -> Result<Vec<Relation>, InputError> {
    let (Some(model), Some(own)) = (model_of(entity), EntityRef::of(entity)) else {
        return Ok(Vec::new());
    };
    let source = own.to_string();
    let mut found = Vec::new();
    for link in model.links {
        for target in targets(entity, link)? {
            let target = EntityRef::parse(target, link.kind, Some(&own.namespace))?.to_string();
            found.push(Relation {
                source: source.clone(),
                kind: link.forth,
                target: target.clone(),
            });
            found.push(Relation {
                source: target,
                kind: link.back,
                target: source.clone(),
            });
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn targets<'e>(entity: &'e Value, link: &Link) -> Result<Vec<&'e str>, InputError> {
    let value = entity.pointer(&format!("/spec/{}", link.field));
    let found: Vec<&str> = match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match found.len() {
        0..=MAX_TARGETS => Ok(found),
        many => Err(InputError(format!(
            "spec.{} has {many} references, more than {MAX_TARGETS}",
            link.field
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(version: &str, kind: &str, spec: Value, expected: &[&str]) {
        let mut entity =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "Me", "namespace": "ns"}});
        entity["spec"] = spec;
        let mut found: Vec<String> = emitted(&entity)
            .unwrap()
            .iter()
            .map(|r| format!("{} {} {}", r.source, r.kind, r.target))
            .collect();
        let mut expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{kind}");
    }

    #[test]
    fn every_reference_has_two_sides() {
        let v1 = "backstage.io/v1alpha1";
        check(
            v1,
            "Component",
            json!({
                "owner": "team", "subcomponentOf": "whole", "providesApis": ["a"], "consumesApis": ["other/b"],
                "dependsOn": ["resource:db"], "dependencyOf": ["component:x"], "system": "s",
            }),
            &[
                "component:ns/me ownedBy group:ns/team",
                "group:ns/team ownerOf component:ns/me",
                "component:ns/me partOf component:ns/whole",
                "component:ns/whole hasPart component:ns/me",
                "component:ns/me providesApi api:ns/a",
                "api:ns/a apiProvidedBy component:ns/me",
                "component:ns/me consumesApi api:other/b",
                "api:other/b apiConsumedBy component:ns/me",
                "component:ns/me dependsOn resource:ns/db",
                "resource:ns/db dependencyOf component:ns/me",
                "component:ns/me dependencyOf component:ns/x",
                "component:ns/x dependsOn component:ns/me",
                "component:ns/me partOf system:ns/s",
                "system:ns/s hasPart component:ns/me",
            ],
        );
        check(
            v1,
            "Group",
            json!({"parent": "up", "children": ["down"], "members": ["jo"]}),
            &[
                "group:ns/me childOf group:ns/up",
                "group:ns/up parentOf group:ns/me",
                "group:ns/me parentOf group:ns/down",
                "group:ns/down childOf group:ns/me",
                "group:ns/me hasMember user:ns/jo",
                "user:ns/jo memberOf group:ns/me",
            ],
        );
        check(
            v1,
            "User",
            json!({"memberOf": ["team", "team"]}),
            &[
                "user:ns/me memberOf group:ns/team",
                "group:ns/team hasMember user:ns/me",
            ],
        );
        check(
            v1,
            "System",
            json!({"owner": "user:jo", "domain": "d"}),
            &[
                "system:ns/me ownedBy user:ns/jo",
                "user:ns/jo ownerOf system:ns/me",
                "system:ns/me partOf domain:ns/d",
                "domain:ns/d hasPart system:ns/me",
            ],
        );
        check(
            "scaffolder.backstage.io/v1beta3",
            "Template",
            json!({"owner": "team"}),
            &[
                "template:ns/me ownedBy group:ns/team",
                "group:ns/team ownerOf template:ns/me",
            ],
        );
        check(v1, "Location", json!({"target": "./x"}), &[]);
    }

    #[test]
    fn what_names_no_kind_is_refused() {
        let entity = json!({
            "apiVersion": "backstage.io/v1alpha1", "kind": "Resource", "metadata": {"name": "a"},
            "spec": {"dependsOn": ["db"]},
        });
        assert!(emitted(&entity).unwrap_err().0.contains("missing or empty kind"));
        let many: Vec<String> = (0..=MAX_TARGETS).map(|n| format!("resource:{n}")).collect();
        let entity = json!({
            "apiVersion": "backstage.io/v1alpha1", "kind": "Resource", "metadata": {"name": "a"},
            "spec": {"dependsOn": many},
        });
        assert!(emitted(&entity).unwrap_err().0.contains("more than 1000"));
    }
}
