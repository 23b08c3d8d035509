//! Reading and writing `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fieldpath::Set;
use crate::fieldpath::codec::write_json;
use crate::updater::{Managers, VersionedSet};

pub(super) const APPLY: &str = "Apply";
pub(super) const UPDATE: &str = "Update";
const FIELDS_V1: &str = "FieldsV1";

/// What tells one entry from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: String,
    /// Empty for appliers: who applies in another version is still the same.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl Identity {
    /// The text by which entries are told apart and sorted in messages: JSON without empty fields, as upstream's is.
    pub(super) fn to_id(&self) -> String {
        let fields = [
            ("manager", &self.manager),
            ("operation", &self.operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        let mut id = String::with_capacity(96);
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            id.push(if id.is_empty() { '{' } else { ',' });
            id.push('"');
            id.push_str(name);
            id.push_str("\":");
            write_json(&mut id, &Value::from(value.as_str()));
        }
        id.push('}');
        id
    }
}

/// The record of an object: owners, who they are, and when they last changed anything.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) owners: Managers,
    pub(super) identities: BTreeMap<String, Identity>,
    pub(super) times: BTreeMap<String, String>,
}

/// Whether the list is a valid record. Admission must not leave another one.
pub fn validate(managed_fields: &Value) -> Result<(), String> {
    Record::decode(Some(managed_fields)).map(|_| ())
}

impl Record {
    pub(super) fn decode(managed_fields: Option<&Value>) -> Result<Self, String> {
        let mut record = Self::default();
        let entries = match managed_fields {
            None | Some(Value::Null) => return Ok(record),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managed fields must be a list".to_owned()),
        };
        for (index, entry) in entries.iter().enumerate() {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            let operation = text("operation");
            if operation != APPLY && operation != UPDATE {
                return Err("operation must be `Apply` or `Update`".to_owned());
            }
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                FIELDS_V1 => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {index}"
                    ));
                }
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Set::new(),
                Some(fields) => Set::from_fields_v1(fields).map_err(|error| {
                    format!("error decoding set of managed fields entry {index}: {error}")
                })?,
            };
            let applied = operation == APPLY;
            let identity = Identity {
                manager: text("manager").to_owned(),
                operation: operation.to_owned(),
                api_version: if applied {
                    String::new()
                } else {
                    api_version.to_owned()
                },
                subresource: text("subresource").to_owned(),
            };
            let id = identity.to_id();
            record.owners.insert(
                id.clone(),
                VersionedSet {
                    set,
                    api_version: api_version.to_owned(),
                    applied,
                },
            );
            match entry.get("time").and_then(Value::as_str) {
                Some(time) => record.times.insert(id.clone(), canonical_time(time)),
                None => record.times.remove(&id),
            };
            record.identities.insert(id, identity);
        }
        Ok(record)
    }

    /// Writes the record into an object; one without owners leaves no trace.
    pub(super) fn encode_into(self, object: &mut Value) {
        let entries = self.encode();
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.shift_remove("managedFields");
            if !entries.is_empty() {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }

    fn encode(mut self) -> Vec<Value> {
        let mut entries = Vec::with_capacity(self.owners.len());
        for (id, owned) in self.owners {
            let (Some(identity), time) = (self.identities.remove(&id), self.times.remove(&id)) else {
                continue;
            };
            let operation = if owned.applied {
                APPLY.to_owned()
            } else {
                identity.operation
            };
            entries.push(Entry {
                operation,
                time,
                manager: identity.manager,
                api_version: owned.api_version,
                subresource: identity.subresource,
                set: owned.set,
            });
        }
        entries.sort_by(|l, r| l.sort_key().cmp(&r.sort_key()));
        entries.into_iter().map(Entry::into_value).collect()
    }
}

/// An entry, about to be written.
struct Entry {
    operation: String,
    time: Option<String>,
    manager: String,
    api_version: String,
    subresource: String,
    set: Set,
}

impl Entry {
    /// Appliers first, then by age. Times are in one format, whose text sorts as the time does.
    fn sort_key(&self) -> (&str, Option<&str>, &str, &str, &str) {
        (
            &self.operation,
            self.time.as_deref(),
            &self.manager,
            &self.api_version,
            &self.subresource,
        )
    }

    fn into_value(self) -> Value {
        let mut entry = Map::with_capacity(7);
        let mut put = |key: &str, value: String| {
            if !value.is_empty() {
                entry.insert(key.to_owned(), Value::from(value));
            }
        };
        put("manager", self.manager);
        put("operation", self.operation);
        put("apiVersion", self.api_version);
        put("time", self.time.unwrap_or_default());
        put("fieldsType", FIELDS_V1.to_owned());
        entry.insert("fieldsV1".to_owned(), self.set.to_fields_v1());
        if !self.subresource.is_empty() {
            entry.insert("subresource".to_owned(), Value::from(self.subresource));
        }
        Value::Object(entry)
    }
}

/// A time as Kubernetes writes it: UTC, whole seconds. What cannot be read stays as it is.
fn canonical_time(time: &str) -> String {
    let is_canonical = time.len() == 20 && time.ends_with('Z');
    if is_canonical {
        return time.to_owned();
    }
    match time
        .parse::<jiff::Timestamp>()
        .map(|parsed| jiff::Timestamp::from_second(parsed.as_second()))
    {
        Ok(Ok(whole)) => whole.to_string(),
        _ => time.to_owned(),
    }
}
