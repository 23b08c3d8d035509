//! `delete`: at once, or marked and left to whoever holds a finalizer.

use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_kinds::pod;
use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::{Value, json};

use super::call::{Answer, Call, has_items, meta, metadata_mut};
use super::write::{is_finished, put_as_is};
use super::{kind_check, present};
use crate::admission::{self, Operation};
use crate::behaviour::check_type;
use crate::chance::rfc3339;
use crate::http::body;
use crate::object::Object;
use crate::query::{Query, dry_run};
use crate::status::{ApiError, success};
use crate::storage::Outcome;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const MAX_TRIES: usize = 16;

/// What shall become of the objects that depend on the deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// `DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    dry_run: bool,
    uid: Option<String>,
    resource_version: Option<String>,
    propagation: Option<Propagation>,
    grace_period: Option<i64>,
}

impl DeleteOptions {
    /// Reads them from the body, or else from the query.
    pub(crate) fn read(call: &Call<'_>, bytes: &[u8], query: &Query) -> Result<Self, ApiError> {
        let mut options = Self::default();
        let body = if bytes.iter().all(u8::is_ascii_whitespace) {
            Value::Null
        } else {
            let format = body::format(call.headers)?;
            let mut body = body::parse(bytes, format)?.value;
            let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
            if kind != "DeleteOptions" {
                let version = body["apiVersion"].as_str().unwrap_or("");
                return Err(ApiError::bad_request(kind_check::not_registered(kind, version)));
            }
            check_type("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", &mut body)?;
            body
        };
        let given: Vec<&str> = body["dryRun"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        options.dry_run = dry_run(given.into_iter().chain(query.all("dryRun")))
            .map_err(|error| ApiError::invalid_options("DeleteOptions", error))?;
        let text = |v: &Value| v.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        options.uid = text(&body["preconditions"]["uid"]);
        options.resource_version = text(&body["preconditions"]["resourceVersion"]);
        options.grace_period = match body["gracePeriodSeconds"].as_i64() {
            Some(seconds) => Some(seconds),
            None => query.integer("gracePeriodSeconds")?,
        };
        let policy = body["propagationPolicy"]
            .as_str()
            .or_else(|| query.get("propagationPolicy"));
        let orphan = body["orphanDependents"].as_bool().or_else(|| {
            query
                .get("orphanDependents")
                .map(|_| query.flag("orphanDependents"))
        });
        options.propagation = match (policy.filter(|p| !p.is_empty()), orphan) {
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid_options(
                    "DeleteOptions",
                    FieldError::invalid(
                        &Path::new("propagationPolicy"),
                        policy.unwrap_or(""),
                        "orphanDependents and deletionPropagation cannot be both set",
                    ),
                ));
            }
            (Some("Orphan"), None) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), None) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), None) => Some(Propagation::Foreground),
            (Some(other), None) => {
                return Err(ApiError::invalid_options(
                    "DeleteOptions",
                    FieldError::not_supported_in_order(
                        &Path::new("propagationPolicy"),
                        other,
                        ["Foreground", "Background", "Orphan", "nil"],
                    ),
                ));
            }
            (None, None) => None,
        };
        Ok(options)
    }
}

/// How a deletion went.
pub(crate) enum Deletion {
    /// The object is gone.
    Gone(Arc<Object>),
    /// It is marked and waits for its finalizers.
    Marked(Arc<Object>),
    /// What would have been.
    DryRun(Value),
    /// The same, with what it would do to what runs.
    Told(Value),
}

/// Deletes the object that the URL names.
pub(crate) async fn delete(call: &Call<'_>, body: Bytes) -> Answer {
    let options = DeleteOptions::read(call, &body, call.query)?;
    match delete_named(call, &call.path.name, &options).await? {
        Deletion::Marked(object) => present::answer(call, 200, &object),
        // As a deletion that waits: there is more to say than that it succeeded.
        Deletion::Told(object) => present::answer_value(call, 200, &object),
        Deletion::DryRun(object) => {
            let status = success(call.about(&call.path.name), meta(&object, "uid"));
            Ok(present::answer_other(call, 200, &status))
        }
        Deletion::Gone(object) => {
            let value = object.value()?;
            let status = success(call.about(&call.path.name), meta(&value, "uid"));
            Ok(present::answer_other(call, 200, &status))
        }
    }
}

/// Deletes one object by name.
pub(crate) async fn delete_named(
    call: &Call<'_>,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deletion, ApiError> {
    for _ in 0..MAX_TRIES {
        let current = call.existing(name).await?;
        let old = present::value(&call.def, &current)?;
        check_preconditions(call, name, &old, options)?;
        admission::validate(call, Operation::Delete, &old, Some(&old)).await?;
        let mut marked = old.clone();
        let at_once = mark(call, &mut marked, options);
        if options.dry_run {
            let is_told = admission::tell_impact(call, Operation::Delete, &mut marked, Some(&old));
            return Ok(match is_told {
                true => Deletion::Told(marked),
                false => Deletion::DryRun(marked),
            });
        }
        if at_once {
            let release = admission::release(call, &old);
            match call
                .kernel
                .storage
                .delete(&call.def, &call.suffix(name), &current, release)
                .await?
            {
                Outcome::Done(last) => return Ok(Deletion::Gone(last)),
                Outcome::Lost => continue,
            }
        }
        if marked == old {
            return Ok(Deletion::Marked(current));
        }
        if let Some(stored) = put_as_is(call, &current, marked).await? {
            return Ok(Deletion::Marked(stored));
        }
    }
    Err(ApiError::modified(call.about(name)))
}

fn check_preconditions(
    call: &Call<'_>,
    name: &str,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    if let Some(uid) = &options.uid
        && uid != meta(old, "uid")
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            meta(old, "uid")
        );
        return Err(ApiError::conflict(call.about_kind(name), why));
    }
    if let Some(version) = &options.resource_version
        && version != meta(old, "resourceVersion")
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            meta(old, "resourceVersion")
        );
        return Err(ApiError::conflict(call.about_kind(name), why));
    }
    Ok(())
}

/// Puts the marks of deletion on an object; `true` if nothing holds it back, so that it can go at once.
fn mark(call: &Call<'_>, object: &mut Value, options: &DeleteOptions) -> bool {
    set_propagation(object, options.propagation);
    let is_namespace = call.def.is("", "namespaces");
    let grace = if call.def.is("", "pods") {
        pod::delete_grace_period(object, options.grace_period)
    } else {
        0
    };
    let held = has_items(object, "finalizers")
        || (is_namespace
            && object["spec"]["finalizers"]
                .as_array()
                .is_some_and(|f| !f.is_empty()));
    if !held && grace == 0 {
        return true;
    }
    let marked = !meta(object, "deletionTimestamp").is_empty();
    if marked
        && object["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|left| grace < left)
    {
        // Who is impatient may shorten the grace, never lengthen it.
        set_grace(call, object, grace);
    }
    if !marked {
        if is_namespace {
            metadata_mut(object).insert("deletionTimestamp".to_owned(), call.now.as_str().into());
        } else {
            set_grace(call, object, grace);
        }
        let metadata = metadata_mut(object);
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".to_owned(), (generation + 1).into());
        }
        if is_namespace {
            object["status"] = json!({"phase": "Terminating"});
        }
    }
    is_finished(object)
}

/// The moment at which the object may go, and how long that is from now.
fn set_grace(call: &Call<'_>, object: &mut Value, grace: i64) {
    let at = if grace == 0 {
        call.now.clone()
    } else {
        rfc3339(call.kernel.clock.unix() + grace)
    };
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), at.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
}

fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Orphan => Some(ORPHAN),
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Background => None,
    };
    let metadata = metadata_mut(object);
    let mut finalizers: Vec<Value> = metadata
        .get("finalizers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    finalizers.retain(|f| f != ORPHAN && f != FOREGROUND);
    finalizers.extend(wanted.map(Value::from));
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), finalizers.into());
    }
}
