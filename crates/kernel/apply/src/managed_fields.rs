//! `metadata.managedFields`: the record of who owns which field, kept on every write.
//!
//! [`update`] keeps it on creates, updates and patches; [`apply`] merges a configuration and keeps it. Around the
//! [`Updater`] they do what Kubernetes' field manager does: fields that identify an object are not tracked, an object
//! without a record gets one that says `before-first-apply`, old updaters are merged into `ancient-changes`, a writer that
//! changed nothing keeps its old time, and `kubectl`'s client-side record is carried over.

mod conflict;
mod last_applied;
mod record;
mod timestamps;

use std::sync::LazyLock;

use fairway_kernel_schema::shape::{ShapeId, Shapes};
use serde_json::{Map, Value, json};
use thiserror::Error;

pub use conflict::{Conflict, Conflicts};
pub use record::validate;
pub use timestamps::keep_unchanged_timestamps;

use crate::fieldpath::Set;
use crate::typed::Typed;
use crate::typed::validate::Duplicates;
use crate::updater::{ConvertError, Converter, ResetFields, UpdateError, Updater, VersionedSet};
use record::{APPLY, Identity, Record, UPDATE};

/// The number of updaters that a record may have.
const MAX_UPDATERS: usize = 10;

/// Where the record is.
const MANAGED_FIELDS: &[&str] = &["metadata", "managedFields"];

/// Fields that identify an object, or that the server sets; nobody owns them.
static UNTRACKED: LazyLock<Set> = LazyLock::new(|| {
    Set::from_paths(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// What a request is about.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// Where the shape is.
    pub shapes: &'a Shapes,
    /// The type of the object in `api_version`.
    pub shape: ShapeId,
    /// The version of the request, such as `apps/v1`. The live object must be in this version.
    pub api_version: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request: RFC 3339, UTC, whole seconds, such as `2026-01-02T03:04:05Z`.
    pub time: &'a str,
    /// The kind is built in: see [`Typed::zero_values`].
    pub built_in: bool,
    /// What a writer through this resource or subresource may not own, by version.
    pub reset_fields: &'a ResetFields,
    /// Conversion to the other versions of the kind; [`SameVersion`] if there is none.
    pub converter: &'a dyn Converter<'a>,
}

/// A kind with one version: records in any other are obsolete.
pub struct SameVersion;

impl<'s> Converter<'s> for SameVersion {
    fn convert<'v>(
        &self,
        object: &'v Typed<'s, '_>,
        api_version: &str,
    ) -> Result<Typed<'s, 'v>, ConvertError> {
        if object.value.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            Ok(object.by_ref())
        } else {
            Err(ConvertError::MissingVersion(api_version.to_owned()))
        }
    }
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ApplyError {
    /// Others own fields that it changes.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The request is wrong whatever the object is.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit its type, or the live object does not.
    #[error("{0}")]
    Invalid(String),
}

/// `new`, which is about to replace `live`, with the record of who owns what brought up to date.
///
/// `live` is `None` on creation. This never fails: an object that does not fit its type loses its record.
pub fn update(ctx: &Ctx<'_>, live: Option<&Value>, mut new: Value, manager: &str) -> Value {
    let given = take_record(&mut new);
    if metadata(&new).is_none() {
        return new;
    }
    let live_record = || Record::decode(live.and_then(managed_fields_of)).unwrap_or_default();
    let record = match &given {
        // A subresource is no way to write the record.
        _ if !ctx.subresource.is_empty() => live_record(),
        Some(given) if is_reset(given) => Record::default(),
        // Clients that do not know the record must not delete it by accident.
        _ => Record::decode(given.as_ref())
            .ok()
            .filter(|r| !r.owners.is_empty())
            .unwrap_or_else(live_record),
    };
    let is_tracked = !record.owners.is_empty() || live.is_none_or(|live| text_at(live, "uid").is_empty());
    if !is_tracked {
        return new;
    }
    let empty = ctx.empty_object();
    if let Ok(record) = ctx.record_update(live.unwrap_or(&empty), &new, record, manager) {
        record.encode_into(&mut new);
    }
    new
}

/// The live object with the configuration applied, and the record of who owns what brought up to date.
///
/// `live` is `None` if the object is to be created. An apply that changes nothing returns what is stored, so that the
/// caller can skip the write; see also [`keep_unchanged_timestamps`].
pub fn apply(
    ctx: &Ctx<'_>,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApplyError> {
    ctx.check_config(config)?;
    let empty = ctx.empty_object();
    let record = Record::decode(live.and_then(managed_fields_of))
        .map_err(|error| ApplyError::Invalid(format!("failed to decode managed fields: {error}")))?;
    let live = live.map_or(empty, without_record);
    let record = if record.owners.is_empty() {
        let empty = ctx.empty_object();
        ctx.record_update(&empty, &live, record, "before-first-apply")
            .map_err(|error| {
                ApplyError::Invalid(format!("failed to create manager for existing fields: {error}"))
            })?
    } else {
        record
    };
    let mut applied = ctx.merge_config(&live, config, record, manager, force)?;
    if manager == last_applied::KUBECTL {
        last_applied::refresh(&mut applied, config);
    }
    Ok(applied)
}

/// The name of the manager: as given in the request, or else from the client's name for itself.
pub fn manager_name(field_manager: Option<&str>, user_agent: &str) -> String {
    const MAX_LENGTH: usize = 128;
    if let Some(given) = field_manager.filter(|given| !given.is_empty()) {
        return given.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars() {
        // Go counts the space as the only printable white space.
        if c.is_control() || (c.is_whitespace() && c != ' ') {
            continue;
        }
        if name.len() + c.len_utf8() > MAX_LENGTH {
            break;
        }
        name.push(c);
    }
    name
}

impl<'a> Ctx<'a> {
    fn typed<'v>(&self, value: &'v Value) -> Typed<'a, 'v> {
        Typed {
            zero_values: self.built_in,
            ..Typed::new(self.shapes, self.shape, value)
        }
    }

    fn updater(&self) -> Updater<'a, 'a> {
        Updater {
            converter: self.converter,
            reset_fields: self.reset_fields,
            skip: MANAGED_FIELDS,
        }
    }

    fn empty_object(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind})
    }

    fn identity(&self, manager: &str, operation: &'static str) -> Identity {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Identity {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            api_version: if operation == APPLY {
                String::new()
            } else {
                self.api_version.to_owned()
            },
            subresource: self.subresource.to_owned(),
        }
    }

    fn check_config(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != self.api_version || kind != self.kind {
            let group_version = if api_version.contains('/') {
                api_version.to_owned()
            } else {
                format!("/{api_version}")
            };
            return Err(ApplyError::BadRequest(format!(
                "invalid object type: {group_version}, Kind={kind}"
            )));
        }
        if managed_fields_of(config).is_some_and(Value::is_array) {
            return Err(ApplyError::BadRequest(
                "metadata.managedFields must be nil".to_owned(),
            ));
        }
        Ok(())
    }

    /// The record after an update of `live` to `new`, neither of which need have one.
    fn record_update(
        &self,
        live: &Value,
        new: &Value,
        record: Record,
        manager: &str,
    ) -> Result<Record, String> {
        // Under a name of its own, the operation owns just what it changed: only then did it change anything.
        const SELF: &str = "current-operation";
        let (live, new) = (self.typed(live), self.typed(new));
        for object in [&new, &live] {
            object
                .validate_except(Duplicates::Allow, MANAGED_FIELDS)
                .map_err(|errors| errors.to_string())?;
        }
        let Record {
            owners,
            mut identities,
            mut times,
        } = record;
        let mut owners = self
            .updater()
            .update(&live, &new, self.api_version, owners, SELF)
            .map_err(|error| error.to_string())?;
        if let Some(mut owned) = owners.remove(SELF) {
            owned.set.subtract(&UNTRACKED);
            if !owned.set.is_empty() {
                let identity = self.identity(manager, UPDATE);
                let id = identity.to_id();
                if let Some(previous) = owners.get(&id) {
                    owned.set = owned.set.union(&previous.set);
                }
                owners.insert(id.clone(), owned);
                times.insert(id.clone(), self.time.to_owned());
                identities.insert(id, identity);
            }
        }
        Ok(cap_updaters(Record {
            owners,
            identities,
            times,
        }))
    }

    /// The object after the configuration was applied to `live`, with its record.
    fn merge_config(
        &self,
        live: &Value,
        config: &Value,
        record: Record,
        manager: &str,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let live_typed = self.typed(live);
        // A configuration is not a Go struct: what it does not mention is not there.
        let config_typed = Typed {
            zero_values: false,
            ..self.typed(config)
        };
        for (object, what, duplicates) in [
            (&config_typed, "patch", Duplicates::Refuse),
            (&live_typed, "live", Duplicates::Allow),
        ] {
            object
                .validate_except(duplicates, MANAGED_FIELDS)
                .map_err(|errors| {
                    ApplyError::Invalid(format!(
                        "failed to create typed {what} object ({}): {errors}",
                        self.name_of(object)
                    ))
                })?;
        }
        let identity = self.identity(manager, APPLY);
        let id = identity.to_id();
        let Record {
            owners,
            mut identities,
            mut times,
        } = record;
        let attempt = |owners, force| {
            self.updater()
                .apply(&live_typed, &config_typed, self.api_version, owners, &id, force)
        };
        // Only kubectl may need a second attempt, and with it the owners once more.
        let owners_again = (manager == last_applied::KUBECTL && !force).then(|| owners.clone());
        let mut outcome = attempt(owners, force);
        if let (Some(owners), Err(UpdateError::Conflicts(conflicts))) = (owners_again, &outcome)
            && let Some(own) = last_applied::owned_by_last_applied(&live_typed, self.api_version)
        {
            // What kubectl owned by its annotation is its own; it does not conflict with itself.
            let others: Vec<_> = conflicts
                .iter()
                .filter(|conflict| !own.has(&conflict.path))
                .cloned()
                .collect();
            outcome = if others.is_empty() {
                attempt(owners, true)
            } else {
                Err(UpdateError::Conflicts(others))
            };
        }
        let applied = outcome.map_err(|error| match error {
            UpdateError::Conflicts(conflicts) => {
                ApplyError::Conflicts(Conflicts::new(&conflicts, &identities))
            }
            other => ApplyError::Invalid(other.to_string()),
        })?;
        let mut owners = applied.managers;
        if let Some(owned) = owners.get_mut(&id) {
            owned.set = owned.set.difference(&UNTRACKED);
        }
        owners.retain(|_, owned: &mut VersionedSet| !owned.set.is_empty());
        identities.insert(id.clone(), identity);
        let mut object = match applied.object {
            Some(object) => {
                times.insert(id, self.time.to_owned());
                object.value.into_owned()
            }
            None => live.clone(),
        };
        Record {
            owners,
            identities,
            times,
        }
        .encode_into(&mut object);
        Ok(object)
    }

    fn name_of(&self, object: &Typed<'_, '_>) -> String {
        let (namespace, name) = (
            text_at(&object.value, "namespace"),
            text_at(&object.value, "name"),
        );
        let slash = if self.api_version.contains('/') { "" } else { "/" };
        format!(
            "{namespace}/{name}; {slash}{}, Kind={}",
            self.api_version, self.kind
        )
    }
}

/// Merges the oldest updaters, those of each version among themselves, until there are few enough.
fn cap_updaters(mut record: Record) -> Record {
    let mut updaters: Vec<String> = record
        .owners
        .iter()
        .filter(|(_, owned)| !owned.applied)
        .map(|(id, _)| id.clone())
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return record;
    }
    updaters.sort_by(|l, r| (record.times.get(l), l).cmp(&(record.times.get(r), r)));
    let mut first_of: Vec<(String, String)> = Vec::new();
    for id in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(owned) = record.owners.get(&id).cloned() else {
            continue;
        };
        let Some((_, first)) = first_of.iter().find(|(version, _)| *version == owned.api_version) else {
            first_of.push((owned.api_version, id));
            continue;
        };
        let bucket = Identity {
            manager: "ancient-changes".to_owned(),
            operation: UPDATE.to_owned(),
            api_version: owned.api_version.clone(),
            subresource: String::new(),
        };
        let bucket_id = bucket.to_id();
        if !record.owners.contains_key(&bucket_id)
            && let Some(oldest) = record.owners.remove(first)
        {
            record.owners.insert(bucket_id.clone(), oldest);
        }
        record.owners.remove(&id);
        if let Some(merged) = record.owners.get_mut(&bucket_id) {
            merged.set = owned.set.union(&merged.set);
        }
        match record.times.get(&id).cloned() {
            Some(time) => record.times.insert(bucket_id.clone(), time),
            None => record.times.remove(&bucket_id),
        };
        record.identities.insert(bucket_id, bucket);
        count -= 1;
    }
    record
}

fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

fn managed_fields_of(object: &Value) -> Option<&Value> {
    metadata(object).and_then(|metadata| metadata.get("managedFields"))
}

fn text_at<'v>(object: &'v Value, key: &str) -> &'v str {
    metadata(object)
        .and_then(|metadata| metadata.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn take_record(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .and_then(|metadata| metadata.shift_remove("managedFields"))
}

/// A copy of the object, without a copy of the record, which is often larger than the rest.
fn without_record(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    fields
        .iter()
        .map(|(key, value)| match value {
            Value::Object(metadata) if key == "metadata" => {
                let kept = metadata.iter().filter(|(key, _)| *key != "managedFields");
                (
                    key.clone(),
                    kept.map(|(key, value)| (key.clone(), value.clone())).collect(),
                )
            }
            _ => (key.clone(), value.clone()),
        })
        .collect()
}

/// Whether the client asks to forget the record: an empty list, or one entry that says nothing.
fn is_reset(managed_fields: &Value) -> bool {
    match managed_fields.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry
            .values()
            .all(|value| value.is_null() || value.as_str().is_some_and(str::is_empty)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
