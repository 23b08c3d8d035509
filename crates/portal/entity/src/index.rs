//! All entities of a workspace, ready to be asked for: as text that only has to be copied, with rows to search and relations of both
//! sides.
//!
//! An entity is serialised once, when it comes. Its relations are kept apart, because others change them; they are written behind its
//! text when somebody reads it. So a list of ten thousand is a copy of memory.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use crate::filter::Searchable;
use crate::lower;
use crate::reference::EntityRef;
use crate::relations::{self, Relation};
use crate::rows::{self, Keys, Row};

/// An entity that was taken into the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What the catalog calls it, for ever.
    pub uid: String,
    /// The entity, without what the catalog adds.
    pub entity: Value,
    /// The name of the object of the location that it belongs to.
    pub location: String,
    /// The entity that led to it, by its canonical reference.
    pub parent: Option<String>,
}

#[derive(Debug)]
struct Held {
    /// JSON with `uid` and `etag`.
    text: Box<str>,
    rows: Vec<Row>,
    emitted: Vec<Relation>,
    uid: Box<str>,
    location: Box<str>,
    parent: Option<Box<str>>,
}

/// Types and targets of the relations of an entity; how many entities say so.
type Related = BTreeMap<(&'static str, String), usize>;

/// The entities of a workspace.
#[derive(Debug, Default)]
pub struct Index {
    held: BTreeMap<Box<str>, Held>,
    by_uid: HashMap<Box<str>, Box<str>>,
    relations: HashMap<String, Related>,
    keys: Keys,
}

/// An entity in the index.
#[derive(Clone, Copy, Debug)]
pub struct Found<'i> {
    /// Its canonical reference.
    pub reference: &'i str,
    held: &'i Held,
    related: Option<&'i Related>,
}

impl Index {
    /// Takes an entity in, in the place of one with the same reference. What is no entity is left out.
    pub fn insert(&mut self, record: &Record) {
        let Some(reference) = EntityRef::of(&record.entity) else {
            return;
        };
        let key = reference.to_string();
        self.remove(&key);
        let emitted = relations::emitted(&record.entity).unwrap_or_default();
        for relation in &emitted {
            let of_source = self.relations.entry(relation.source.clone()).or_default();
            *of_source
                .entry((relation.kind, relation.target.clone()))
                .or_default() += 1;
        }
        let held = Held {
            text: shown(record).into(),
            rows: rows::of(&record.entity, &record.uid, &mut self.keys),
            emitted,
            uid: record.uid.as_str().into(),
            location: record.location.as_str().into(),
            parent: record.parent.as_deref().map(Into::into),
        };
        let key: Box<str> = key.into();
        self.by_uid.insert(held.uid.clone(), key.clone());
        self.held.insert(key, held);
    }

    /// Forgets an entity, by its canonical reference.
    pub fn remove(&mut self, reference: &str) {
        let Some(held) = self.held.remove(reference) else {
            return;
        };
        self.by_uid.remove(&held.uid);
        for relation in held.emitted {
            let Some(of_source) = self.relations.get_mut(&relation.source) else {
                continue;
            };
            let key = (relation.kind, relation.target);
            match of_source.get_mut(&key) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    of_source.remove(&key);
                }
            }
            if of_source.is_empty() {
                self.relations.remove(&relation.source);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// An entity by its reference, in any case.
    pub fn get(&self, reference: &str) -> Option<Found<'_>> {
        let (reference, held) = self.held.get_key_value(lower(reference).as_str())?;
        Some(self.found(reference, held))
    }

    /// An entity by its UID.
    pub fn by_uid(&self, uid: &str) -> Option<Found<'_>> {
        self.get(self.by_uid.get(uid)?)
    }

    /// All of them, in the order of their references.
    pub fn iter(&self) -> impl Iterator<Item = Found<'_>> {
        self.held
            .iter()
            .map(|(reference, held)| self.found(reference, held))
    }

    /// Those of a kind, in the order of their references.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = Found<'_>> {
        let from: Box<str> = format!("{kind}:").into();
        // The character after the colon.
        let to: Box<str> = format!("{kind};").into();
        self.held
            .range(from..to)
            .map(|(reference, held)| self.found(reference, held))
    }

    fn found<'i>(&'i self, reference: &'i str, held: &'i Held) -> Found<'i> {
        Found {
            reference,
            held,
            related: self.relations.get(reference),
        }
    }
}

/// An entity as it is shown, without relations. The etag follows from what it says.
fn shown(record: &Record) -> String {
    let mut entity = record.entity.clone();
    let metadata = &mut entity["metadata"];
    if metadata["namespace"].is_null() {
        metadata["namespace"] = crate::DEFAULT_NAMESPACE.into();
    }
    metadata["uid"] = record.uid.as_str().into();
    let digest = Sha1::digest(entity.to_string());
    let etag: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    entity["metadata"]["etag"] = etag.into();
    entity.to_string()
}

impl<'i> Found<'i> {
    /// What the catalog calls it.
    pub fn uid(&self) -> &'i str {
        &self.held.uid
    }

    /// The location that it belongs to.
    pub fn location(&self) -> &'i str {
        &self.held.location
    }

    /// The entity that led to it.
    pub fn parent(&self) -> Option<&'i str> {
        self.held.parent.as_deref()
    }

    /// Its rows, without relations.
    pub fn rows(&self) -> &'i [Row] {
        &self.held.rows
    }

    /// Types and targets of its relations, sorted.
    pub fn relations(&self) -> impl Iterator<Item = (&'i str, &'i str)> + use<'i> {
        let related = self.related.into_iter().flat_map(BTreeMap::keys);
        related.map(|(kind, target)| (*kind, target.as_str()))
    }

    /// Writes it as JSON.
    pub fn write(&self, out: &mut String) {
        let text = &self.held.text;
        out.push_str(text.strip_suffix('}').unwrap_or(text));
        out.push_str(",\"relations\":[");
        for (at, (kind, target)) in self.relations().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&json!({"type": kind, "targetRef": target}).to_string());
        }
        out.push_str("]}");
    }

    /// It as a value.
    pub fn value(&self) -> Value {
        let mut text = String::new();
        self.write(&mut text);
        // It was written a moment ago.
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// About how long its text is.
    pub fn size(&self) -> usize {
        self.held.text.len() + 80 * self.related.map_or(0, BTreeMap::len) + 20
    }
}

impl Searchable for Found<'_> {
    fn values<'s>(&'s self, key: &str) -> Box<dyn Iterator<Item = Option<&'s str>> + 's> {
        if let Some(kind) = key.strip_prefix("relations.") {
            let kind = kind.to_owned();
            let related = self.relations().filter(move |(found, _)| lower(found) == kind);
            return Box::new(related.map(|(_, target)| Some(target)));
        }
        let key: Box<str> = key.into();
        let rows = self.held.rows.iter().filter(move |row| *row.key == *key);
        Box::new(rows.map(|row| row.value.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, kind: &str, spec: Value) -> Record {
        let mut entity =
            json!({"apiVersion": "backstage.io/v1alpha1", "kind": kind, "metadata": {"name": name}});
        entity["spec"] = spec;
        Record {
            uid: format!("uid-{name}"),
            entity,
            location: "loc".to_owned(),
            parent: None,
        }
    }

    fn relations(index: &Index, reference: &str) -> Vec<String> {
        let found = index.get(reference).unwrap();
        found
            .relations()
            .map(|(kind, target)| format!("{kind} {target}"))
            .collect()
    }

    #[test]
    fn relations_come_and_go_with_who_says_so() {
        let mut index = Index::default();
        index.insert(&record(
            "Team",
            "Group",
            json!({"children": [], "members": ["jo"]}),
        ));
        index.insert(&record("web", "Component", json!({"owner": "team"})));
        index.insert(&record("jo", "User", json!({"memberOf": ["team"]})));
        assert_eq!(
            relations(&index, "group:default/team"),
            ["hasMember user:default/jo", "ownerOf component:default/web"]
        );
        // Both say it: it stays as long as one does.
        index.insert(&record("jo", "User", json!({"memberOf": []})));
        assert_eq!(
            relations(&index, "user:default/jo"),
            ["memberOf group:default/team"]
        );
        index.remove("group:default/team");
        assert!(relations(&index, "user:default/jo").is_empty());
        assert_eq!(
            relations(&index, "component:default/web"),
            ["ownedBy group:default/team"]
        );
        index.remove("component:default/web");
        index.remove("user:default/jo");
        assert!(index.is_empty() && index.relations.is_empty() && index.by_uid.is_empty());
    }

    #[test]
    fn entities_are_shown_with_what_the_catalog_knows() {
        let mut index = Index::default();
        index.insert(&record(
            "Web",
            "Component",
            json!({"owner": "team", "text": "a\"b}"}),
        ));
        let shown = index.get("Component:Default/WEB").unwrap().value();
        assert_eq!(shown["metadata"]["name"], "Web");
        assert_eq!(shown["metadata"]["namespace"], "default");
        assert_eq!(shown["metadata"]["uid"], "uid-Web");
        assert_eq!(shown["metadata"]["etag"].as_str().unwrap().len(), 40);
        assert_eq!(
            shown["relations"],
            json!([{"type": "ownedBy", "targetRef": "group:default/team"}])
        );
        let etag = shown["metadata"]["etag"].clone();
        index.insert(&record("Web", "Component", json!({"owner": "other"})));
        assert_ne!(index.by_uid("uid-Web").unwrap().value()["metadata"]["etag"], etag);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn relations_can_be_searched() {
        let mut index = Index::default();
        index.insert(&record("web", "Component", json!({"owner": "team"})));
        index.insert(&record("a", "API", json!({"owner": "team"})));
        let found = index.get("component:default/web").unwrap();
        let values: Vec<_> = found.values("relations.ownedby").collect();
        assert_eq!(values, [Some("group:default/team")]);
        let names: Vec<&str> = index.of_kind("api").map(|found| found.reference).collect();
        assert_eq!(names, ["api:default/a"]);
    }
}
