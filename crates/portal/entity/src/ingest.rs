//! What reading a location changes: which entities come, change, become orphans or go.
//!
//! ```text
//! read and new                                  → created
//! read and known, of this location              → changed, if it says something else
//! read, known, of another location
//!     the same file                             → the other's: both may read it
//!     an orphan there                           → taken over
//!     else                                      → refused; first come, first served
//! known here, no longer read                    → an orphan, as upstream keeps it; somebody deletes it
//! known here, and what is there now is wrong     → it stays as it was
//! known here, and a file could not be read       → nobody becomes an orphan
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use crate::annotation;
use crate::object::entity_name;
use crate::place::LocationRef;
use crate::reference::EntityRef;

/// An entity that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// It, good.
    pub entity: Value,
    /// The file that it is in.
    pub file: LocationRef,
    /// The entity that led to the file, by its canonical reference.
    pub parent: Option<String>,
}

/// What does not become an orphan, though it was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spared {
    /// A file could not be read: nobody knows what is in it.
    pub all: bool,
    /// Objects whose entities were there, and wrong.
    pub names: HashSet<String>,
}

/// An object that there is.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its `spec`.
    pub spec: Value,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make it.
    Create(Value),
    /// Give it another `spec`.
    Change(Value),
    /// Nothing leads to it any more.
    Orphan,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// By the names of objects.
    pub steps: BTreeMap<String, Step>,
    /// Entities that are not taken, and why.
    pub refused: Vec<String>,
    /// Names of objects that another location has: this one takes them over when they go there.
    pub awaited: Vec<String>,
    /// How many entities the location has.
    pub entities: usize,
}

/// Adds what the catalog says of where an entity comes from; addresses that the entity names itself stay.
pub fn annotate(entity: &mut Value, file: &LocationRef, origin: &LocationRef) {
    let annotations = &mut entity["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[annotation::LOCATION] = file.to_string().into();
    annotations[annotation::ORIGIN] = origin.to_string().into();
    let mut default = |key: &str, value: String| {
        if annotations[key].is_null() {
            annotations[key] = value.into();
        }
    };
    default(annotation::VIEW_URL, file.target.clone());
    if let Some((directory, _)) = file.target.rsplit_once('/') {
        default(annotation::SOURCE_LOCATION, format!("{}:{directory}/", file.kind));
    }
}

/// Decides. `known` are the objects of the location and those with the names of what was read.
pub fn plan(location: &str, wanted: Vec<Wanted>, spared: &Spared, known: &HashMap<String, Known>) -> Plan {
    let mut plan = Plan::default();
    let mut taken: HashMap<String, LocationRef> = HashMap::new();
    for one in wanted {
        let Some(reference) = EntityRef::of(&one.entity) else {
            continue;
        };
        let name = entity_name(&reference);
        if let Some(before) = taken.get(&name) {
            plan.refused
                .push(conflict(&reference, &before.to_string(), &one.file));
            continue;
        }
        let spec = spec(location, &one);
        let text = |known: &Known, field: &str| known.spec[field].as_str().unwrap_or_default().to_owned();
        match known.get(&name) {
            None => {
                plan.steps.insert(name.clone(), Step::Create(spec));
            }
            Some(before) if text(before, "location") == location || before.spec["orphan"] == true => {
                if before.spec != spec {
                    plan.steps.insert(name.clone(), Step::Change(spec));
                }
            }
            Some(before) if text(before, "file") == one.file.to_string() => {}
            Some(before) => {
                plan.refused
                    .push(conflict(&reference, &text(before, "file"), &one.file));
                plan.awaited.push(name);
                continue;
            }
        }
        plan.entities += 1;
        taken.insert(name, one.file);
    }
    for (name, before) in known {
        let is_ours = before.spec["location"] == location && before.spec["orphan"] != true;
        if is_ours && !spared.all && !spared.names.contains(name) && !taken.contains_key(name) {
            plan.steps.insert(name.clone(), Step::Orphan);
        }
    }
    plan
}

fn spec(location: &str, one: &Wanted) -> Value {
    let mut spec = json!({"entity": one.entity, "location": location, "file": one.file.to_string()});
    if let Some(parent) = &one.parent {
        spec["parent"] = parent.as_str().into();
    }
    spec
}

fn conflict(reference: &EntityRef, before: &str, now: &LocationRef) -> String {
    format!("Detected conflicting entityRef {reference} already referenced by {before} and now also {now}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> LocationRef {
        LocationRef {
            kind: "url".to_owned(),
            target: format!("https://git/{path}"),
        }
    }

    fn wanted(name: &str, owner: &str, path: &str) -> Wanted {
        Wanted {
            entity: json!({"kind": "Component", "metadata": {"name": name}, "spec": {"owner": owner}}),
            file: file(path),
            parent: Some("location:default/x".to_owned()),
        }
    }

    fn known(name: &str, owner: &str, location: &str, path: &str, orphan: bool) -> (String, Known) {
        let mut spec = spec(location, &wanted(name, owner, path));
        if orphan {
            spec["orphan"] = json!(true);
        }
        (format!("component.default.{name}"), Known { spec })
    }

    fn check(wanted: Vec<Wanted>, known: Vec<(String, Known)>, steps: &[&str], refused: usize) {
        let plan = plan("here", wanted, &Spared::default(), &known.into_iter().collect());
        let found: Vec<String> = plan
            .steps
            .iter()
            .map(|(name, step)| {
                let what = match step {
                    Step::Create(_) => "create",
                    Step::Change(spec) => {
                        assert_eq!((&spec["location"], spec.get("orphan")), (&json!("here"), None));
                        "change"
                    }
                    Step::Orphan => "orphan",
                };
                format!("{what} {}", name.trim_start_matches("component.default."))
            })
            .collect();
        assert_eq!(found, steps);
        assert_eq!(plan.refused.len(), refused, "{:?}", plan.refused);
        assert!(plan.awaited.len() <= refused, "{:?}", plan.awaited);
    }

    #[test]
    fn what_another_location_has_is_waited_for() {
        let read = vec![
            wanted("a", "t", "f"),
            wanted("b", "t", "f"),
            wanted("B", "t", "g"),
        ];
        let there = [
            known("a", "t", "there", "other", false),
            known("b", "t", "there", "x", true),
        ];
        let plan = plan("here", read, &Spared::default(), &there.into());
        // Not what is read twice here: nobody else has it.
        assert_eq!(
            (plan.awaited, plan.refused.len()),
            (vec!["component.default.a".to_owned()], 2)
        );
    }

    #[test]
    fn entities_come_change_and_become_orphans() {
        check(vec![wanted("a", "t", "f")], vec![], &["create a"], 0);
        check(
            vec![wanted("a", "t", "f")],
            vec![known("a", "t", "here", "f", false)],
            &[],
            0,
        );
        check(
            vec![wanted("a", "other", "f")],
            vec![known("a", "t", "here", "f", false)],
            &["change a"],
            0,
        );
        check(
            vec![],
            vec![known("a", "t", "here", "f", false)],
            &["orphan a"],
            0,
        );
        // Once is enough.
        check(vec![], vec![known("a", "t", "here", "f", true)], &[], 0);
        // It is back.
        check(
            vec![wanted("a", "t", "f")],
            vec![known("a", "t", "here", "f", true)],
            &["change a"],
            0,
        );
        // It has moved to another file of the same location.
        check(
            vec![wanted("a", "t", "g")],
            vec![known("a", "t", "here", "f", false)],
            &["change a"],
            0,
        );
    }

    #[test]
    fn what_is_wrong_stays_as_it_was() {
        let objects: HashMap<String, Known> = [
            known("a", "t", "here", "f", false),
            known("b", "t", "here", "f", false),
        ]
        .into();
        let names = HashSet::from(["component.default.a".to_owned()]);
        let spared = Spared { all: false, names };
        let steps = plan("here", Vec::new(), &spared, &objects).steps;
        assert_eq!(steps.into_keys().collect::<Vec<_>>(), ["component.default.b"]);
        let spared = Spared {
            all: true,
            ..Spared::default()
        };
        assert!(plan("here", Vec::new(), &spared, &objects).steps.is_empty());
    }

    #[test]
    fn who_comes_first_has_the_entity() {
        check(
            vec![wanted("a", "t", "f")],
            vec![known("a", "t", "there", "other", false)],
            &[],
            1,
        );
        // The same file, registered twice.
        check(
            vec![wanted("a", "t", "f")],
            vec![known("a", "t", "there", "f", false)],
            &[],
            0,
        );
        check(
            vec![wanted("a", "t", "f")],
            vec![known("a", "t", "there", "other", true)],
            &["change a"],
            0,
        );
        check(
            vec![wanted("a", "t", "f"), wanted("A", "t", "g")],
            vec![],
            &["create a"],
            1,
        );
    }

    #[test]
    fn where_an_entity_comes_from_is_noted() {
        let mut entity = json!({"metadata": {"name": "a", "annotations": {"backstage.io/view-url": "mine"}}});
        annotate(&mut entity, &file("root/app/x.yaml"), &file("origin"));
        assert_eq!(
            entity["metadata"]["annotations"],
            json!({
                "backstage.io/view-url": "mine",
                "backstage.io/managed-by-location": "url:https://git/root/app/x.yaml",
                "backstage.io/managed-by-origin-location": "url:https://git/origin",
                "backstage.io/source-location": "url:https://git/root/app/",
            })
        );
    }
}
