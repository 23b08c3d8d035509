//! What objects are told, and how that is laid over what their status says already.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::observed::{Kind, Name};

/// The status of one object, as this build sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub workspace: String,
    pub kind: Kind,
    pub name: Name,
    pub says: Says,
}

/// What differs from kind to kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    Class {
        conditions: Vec<Condition>,
        features: Vec<&'static str>,
    },
    Gateway {
        /// Type and value.
        addresses: Vec<(String, String)>,
        conditions: Vec<Condition>,
        listeners: Vec<ListenerSays>,
    },
    /// HTTPRoute, GRPCRoute, TLSRoute, TCPRoute.
    Parents(Vec<ParentSays>),
    /// BackendTLSPolicy: by ancestor.
    Ancestors(Vec<ParentSays>),
    /// OpenShift's Route.
    Ingress {
        host: String,
        router: String,
        canonical: String,
        wildcard: &'static str,
        conditions: Vec<Condition>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListenerSays {
    pub name: String,
    /// Group and kind.
    pub kinds: Vec<(&'static str, &'static str)>,
    pub attached: usize,
    pub conditions: Vec<Condition>,
}

/// What one parent's controller says of a route, or one ancestor's of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentSays {
    /// The reference as the route has it.
    pub reference: Value,
    pub controller: String,
    pub conditions: Vec<Condition>,
}

/// A condition without its time: that depends on what was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: &'static str,
    pub status: bool,
    pub reason: &'static str,
    pub message: String,
    pub generation: i64,
}

/// A message has room for 32768 characters; nobody reads so many.
const LONGEST: usize = 4096;

impl Condition {
    /// A message that quotes too much of a manifest is cut.
    pub fn new(
        kind: &'static str,
        status: bool,
        reason: &'static str,
        message: impl Into<String>,
        generation: i64,
    ) -> Self {
        let mut message = message.into();
        if message.len() > LONGEST {
            message.truncate(message.floor_char_boundary(LONGEST));
            message.push('…');
        }
        Self {
            kind,
            status,
            reason,
            message,
            generation,
        }
    }

    fn over(&self, current: Option<&Value>, now: &str) -> Value {
        let status = if self.status { "True" } else { "False" };
        let since = current
            .filter(|old| old["status"] == status)
            .and_then(|old| old["lastTransitionTime"].as_str())
            .unwrap_or(now);
        json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": self.generation,
            "lastTransitionTime": since,
        })
    }
}

impl Status {
    /// The whole `status` of the object: what others have written stays, and conditions keep the time of their last change.
    /// Equal to `current` if there is nothing to write. Entries of `controllers` are ours: those that no longer hold go.
    pub fn over(&self, current: &Value, controllers: &BTreeSet<String>, now: &str) -> Value {
        let mut status = current.as_object().cloned().unwrap_or_default();
        match &self.says {
            Says::Class {
                conditions: said,
                features,
            } => {
                status.insert("conditions".into(), conditions(said, &current["conditions"], now));
                let features: Vec<Value> = features.iter().map(|name| json!({"name": name})).collect();
                status.insert("supportedFeatures".into(), features.into());
            }
            Says::Gateway {
                addresses,
                conditions: said,
                listeners,
            } => {
                let addresses: Vec<Value> = addresses
                    .iter()
                    .map(|(kind, value)| json!({"type": kind, "value": value}))
                    .collect();
                set(&mut status, "addresses", addresses);
                status.insert("conditions".into(), conditions(said, &current["conditions"], now));
                let listeners = listeners
                    .iter()
                    .map(|one| one.over(named(&current["listeners"], &one.name), now))
                    .collect();
                set(&mut status, "listeners", listeners);
            }
            Says::Parents(parents) => {
                let merged = entries(parents, &current["parents"], "parentRef", controllers, now);
                set(&mut status, "parents", merged);
            }
            Says::Ancestors(ancestors) => {
                let merged = entries(ancestors, &current["ancestors"], "ancestorRef", controllers, now);
                set(&mut status, "ancestors", merged);
            }
            Says::Ingress { .. } => {
                status.insert("ingress".into(), self.ingress(&current["ingress"], now));
            }
        }
        Value::Object(status)
    }

    fn ingress(&self, current: &Value, now: &str) -> Value {
        let Says::Ingress {
            host,
            router,
            canonical,
            wildcard,
            conditions: said,
        } = &self.says
        else {
            return current.clone();
        };
        let old = items(current).find(|one| one["routerName"] == router.as_str());
        // Of Routes, conditions have no `observedGeneration`, and the field of their kind is `type` alone.
        let told: Vec<Value> = said
            .iter()
            .map(|condition| {
                let mut told =
                    condition.over(old.and_then(|old| typed(&old["conditions"], condition.kind)), now);
                if let Some(fields) = told.as_object_mut() {
                    fields.remove("observedGeneration");
                    // An admitted Route says no more than that, as OpenShift's router has it.
                    fields.retain(|_, value| *value != "");
                }
                told
            })
            .collect();
        let ours = json!({
            "host": host,
            "routerName": router,
            "routerCanonicalHostname": canonical,
            "wildcardPolicy": wildcard,
            "conditions": told,
        });
        let mut all: Vec<Value> = items(current)
            .filter(|one| one["routerName"] != router.as_str())
            .cloned()
            .collect();
        all.insert(0, ours);
        all.into()
    }
}

impl ListenerSays {
    fn over(&self, current: Option<&Value>, now: &str) -> Value {
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|(group, kind)| json!({"group": group, "kind": kind}))
            .collect();
        let empty = Value::Null;
        json!({
            "name": self.name,
            "supportedKinds": kinds,
            "attachedRoutes": self.attached,
            "conditions": conditions(&self.conditions, current.map_or(&empty, |old| &old["conditions"]), now),
        })
    }
}

/// Ours in our order, then those of others as they were. Ours that no longer hold are gone: a condition that the
/// specification wants absent when false (`PartiallyInvalid`, `OverlappingTLSConfig`) is one.
fn conditions(said: &[Condition], current: &Value, now: &str) -> Value {
    let ours = said
        .iter()
        .map(|condition| condition.over(typed(current, condition.kind), now));
    let others = items(current)
        .filter(|old| old["type"].as_str().is_some_and(|kind| kind.contains('/')))
        .cloned();
    ours.chain(others).collect::<Vec<_>>().into()
}

/// Entries of other controllers stay where they are; ours follow in the order of the spec.
fn entries(
    said: &[ParentSays],
    current: &Value,
    reference: &str,
    controllers: &BTreeSet<String>,
    now: &str,
) -> Vec<Value> {
    let others = items(current).filter(|old| {
        !old["controllerName"]
            .as_str()
            .is_some_and(|name| controllers.contains(name))
    });
    let empty = Value::Null;
    let ours = said.iter().map(|one| {
        let old = items(current)
            .find(|old| old["controllerName"] == one.controller.as_str() && old[reference] == one.reference);
        let mut entry = Map::new();
        entry.insert(reference.to_owned(), one.reference.clone());
        entry.insert("controllerName".to_owned(), one.controller.clone().into());
        let told = conditions(&one.conditions, old.map_or(&empty, |old| &old["conditions"]), now);
        entry.insert("conditions".to_owned(), told);
        Value::Object(entry)
    });
    others.cloned().chain(ours).collect()
}

/// Empty lists are not begun, but one that is there is emptied: `parents` is required once there is a status.
fn set(status: &mut Map<String, Value>, field: &str, values: Vec<Value>) {
    if !values.is_empty() || status.contains_key(field) {
        status.insert(field.to_owned(), values.into());
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn typed<'a>(list: &'a Value, kind: &str) -> Option<&'a Value> {
    items(list).find(|one| one["type"] == kind)
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    items(list).find(|one| one["name"] == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::{Condition, ListenerSays, ParentSays, Says, Status};
    use crate::observed::{Kind, Name};

    const NOW: &str = "2026-06-01T00:00:00Z";
    const THEN: &str = "2026-01-01T00:00:00Z";

    fn over(kind: Kind, says: Says, current: &Value) -> Value {
        let status = Status {
            workspace: "w".into(),
            kind,
            name: Name::new("n", "x"),
            says,
        };
        let ours = BTreeSet::from(["ours".to_owned()]);
        let written = status.over(current, &ours, NOW);
        assert_eq!(
            status.over(&written, &ours, "later"),
            written,
            "written once, there is nothing left to write"
        );
        written
    }

    fn accepted(status: bool) -> Condition {
        Condition::new("Accepted", status, "Accepted", "", 2)
    }

    fn told(status: &str, since: &str) -> Value {
        json!({"type": "Accepted", "status": status, "reason": "Accepted", "message": "", "observedGeneration": 2, "lastTransitionTime": since})
    }

    fn gateway(status: bool) -> Says {
        Says::Gateway {
            addresses: Vec::new(),
            conditions: vec![accepted(status)],
            listeners: vec![ListenerSays {
                name: "http".into(),
                kinds: Vec::new(),
                attached: 1,
                conditions: vec![accepted(status)],
            }],
        }
    }

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change() {
        let old = json!({"conditions": [{"type": "Accepted", "status": "True", "lastTransitionTime": THEN, "observedGeneration": 1}]});
        assert_eq!(
            over(Kind::Gateway, gateway(true), &old)["conditions"],
            json!([told("True", THEN)])
        );
        assert_eq!(
            over(Kind::Gateway, gateway(false), &old)["conditions"],
            json!([told("False", NOW)])
        );
        assert_eq!(
            over(Kind::Gateway, gateway(true), &Value::Null)["conditions"],
            json!([told("True", NOW)])
        );
    }

    #[test]
    fn what_others_write_stays_and_what_no_longer_holds_goes() {
        let theirs = json!({"type": "example.com/Seen", "status": "True"});
        let stale = json!({"type": "PartiallyInvalid", "status": "True"});
        let old = json!({"conditions": [theirs, stale], "listeners": [{"name": "gone"}], "attachedListenerSets": 1});
        let new = over(Kind::Gateway, gateway(true), &old);
        assert_eq!(new["conditions"], json!([told("True", NOW), theirs]));
        assert_eq!(new["listeners"].as_array().map(Vec::len), Some(1));
        assert_eq!(new["attachedListenerSets"], 1);
    }

    #[test]
    fn parents_of_other_controllers_stay() {
        let theirs = json!({"parentRef": {"name": "b"}, "controllerName": "theirs", "conditions": []});
        let ours = json!({"parentRef": {"name": "gone"}, "controllerName": "ours", "conditions": []});
        let parent = ParentSays {
            reference: json!({"name": "a"}),
            controller: "ours".into(),
            conditions: vec![accepted(true)],
        };
        let new = over(
            Kind::HttpRoute,
            Says::Parents(vec![parent]),
            &json!({"parents": [ours, theirs]}),
        );
        let expected =
            json!({"parentRef": {"name": "a"}, "controllerName": "ours", "conditions": [told("True", NOW)]});
        assert_eq!(new["parents"], json!([theirs, expected]));
        let none = over(
            Kind::HttpRoute,
            Says::Parents(Vec::new()),
            &json!({"parents": [ours, theirs]}),
        );
        assert_eq!(
            none["parents"],
            json!([theirs]),
            "a route that left us is told nothing by us"
        );
        let nothing = over(Kind::HttpRoute, Says::Parents(Vec::new()), &json!({}));
        assert_eq!(nothing, json!({}), "a route that was never ours is not touched");
    }

    #[test]
    fn a_message_that_quotes_too_much_is_cut() {
        let message = Condition::new("Accepted", false, "Invalid", "ä".repeat(5000), 1).message;
        assert_eq!(message.len(), super::LONGEST + '…'.len_utf8());
    }

    #[test]
    fn an_admitted_route_says_no_more_than_that() {
        let says = |condition: Condition| Says::Ingress {
            host: "h".into(),
            router: "default".into(),
            canonical: "c".into(),
            wildcard: "None",
            conditions: vec![condition],
        };
        let other = json!({"routerName": "other", "host": "h"});
        let new = over(
            Kind::Route,
            says(Condition::new("Admitted", true, "", "", 1)),
            &json!({"ingress": [other]}),
        );
        let admitted = json!({"type": "Admitted", "status": "True", "lastTransitionTime": NOW});
        assert_eq!(new["ingress"][0]["conditions"], json!([admitted]));
        assert_eq!(new["ingress"][1], other);
    }
}
