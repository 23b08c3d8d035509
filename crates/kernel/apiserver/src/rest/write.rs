//! What create, update and patch share: decode, own, prepare, validate, store.
//!
//! The order is upstream's: decode and default in the version of the request, run the change, record field ownership,
//! then prepare and validate in the stored version, then one compare-and-set. A change that was computed from an
//! object which somebody else has meanwhile written is computed again, unless the client named a resourceVersion.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_kernel_apply::managed_fields;
use fairway_kernel_kinds::meta as object_meta;
use fairway_kernel_schema::field::{FieldError, Path};
use fairway_kernel_tenancy::claims;
use fairway_kernel_tenancy::names::annotation;
use fairway_kernel_tenancy::names::label;
use serde_json::Value;

use super::call::{Call, has_items, meta, metadata_mut};
use super::kind_check::check_kind;
use super::{present, strict};
use crate::admission::{self, Operation};
use crate::behaviour;
use crate::convert;
use crate::http::body::Parsed;
use crate::key::{ObjectSuffix, ROOT_CLUSTER};
use crate::object::Object;
use crate::query::{FieldValidation, WriteOptions, number_fault};
use crate::status::ApiError;
use crate::storage::{Outcome, Reservations, Storage};

/// Tries of a write that others keep overtaking in the same addresses.
const MAX_TRIES: usize = 16;
/// Tries of a change without a condition. Each lost one means that somebody else's was stored, so only a crowd gets here.
const MAX_CHANGES: u64 = 1_000;
/// From this try on, a change waits a little, so that a crowd does not only redo its work.
const PATIENT_FROM: u64 = 4;
/// Tries of a generated name that is taken.
const MAX_NAMES: usize = 8;

/// What a write left behind.
#[derive(Debug)]
pub(crate) enum Written {
    /// The object did not exist before.
    Created(Arc<Object>),
    /// The object as it is now; also where nothing had to be written.
    Updated(Arc<Object>),
    /// What it would have been.
    DryRun {
        /// In the version of the request.
        object: Value,
        /// Whether it would have been created.
        created: bool,
    },
    /// The last finalizer went, and the object with it.
    Deleted(Arc<Object>),
}

impl Written {
    /// The answer that this write deserves.
    pub(crate) fn answer(self, call: &Call<'_>) -> super::call::Answer {
        match self {
            Self::Created(object) => present::answer(call, 201, &object),
            Self::Updated(object) | Self::Deleted(object) => present::answer(call, 200, &object),
            Self::DryRun { object, created } => {
                present::answer_value(call, if created { 201 } else { 200 }, &object)
            }
        }
    }
}

/// Reads an object of the call's kind: right kind and version, no unknown fields, defaults filled in.
pub(crate) fn decode(
    call: &Call<'_>,
    parsed: Parsed,
    strictness: FieldValidation,
) -> Result<Value, ApiError> {
    let Parsed {
        value: mut object,
        duplicates,
    } = parsed;
    check_kind(call, &mut object)?;
    let document = (!duplicates.is_empty() && call.def.custom().is_none()).then(|| object.clone());
    let unknown = behaviour::prune(&call.def, &mut object)?;
    let complaints = strict::complaints(document.as_ref(), duplicates, &unknown);
    complain(call, complaints, strictness)?;
    behaviour::default(&call.def, &mut object);
    Ok(object)
}

/// Deals with fields that occur twice or that nobody knows, as the client wishes.
fn complain(call: &Call<'_>, all: Vec<String>, strictness: FieldValidation) -> Result<(), ApiError> {
    match strictness {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => all.into_iter().for_each(|c| call.warn(c)),
        FieldValidation::Strict => {
            if !all.is_empty() {
                let def = &call.def;
                return Err(ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                    def.kind,
                    def.version,
                    def.kind,
                    all.join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// An owner counts once; who names it twice is told so.
fn merge_owners(call: &Call<'_>, object: &mut Value) {
    let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") else {
        return;
    };
    if owners.len() < 2 {
        return;
    }
    // By their hashes: a list as long as a body can hold must not be compared each with each.
    let mut seen = HashSet::with_capacity(owners.len());
    let is_first: Vec<bool> = owners.iter().map(|owner| seen.insert(owner)).collect();
    let (mut kept, mut repeated): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for (owner, is_first) in std::mem::take(owners).into_iter().zip(is_first) {
        if is_first {
            kept.push(owner);
        } else {
            repeated.push(owner["uid"].as_str().unwrap_or("").to_owned());
        }
    }
    *owners = kept;
    if !repeated.is_empty() {
        repeated.sort_unstable();
        repeated.dedup();
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        ));
    }
}

/// The name under which the client owns what it writes.
pub(crate) fn manager(call: &Call<'_>, options: &WriteOptions) -> String {
    managed_fields::manager_name(options.field_manager.as_deref(), call.user_agent())
}

/// Stores a new object.
pub(crate) async fn create(
    call: &Call<'_>,
    mut object: Value,
    options: &WriteOptions,
    applied: bool,
) -> Result<Written, ApiError> {
    let namespace = call.namespace();
    object_meta::match_namespace(&mut object, Some(namespace).filter(|n| !n.is_empty()))
        .map_err(ApiError::bad_request)?;
    if !meta(&object, "resourceVersion").is_empty() && !applied {
        return Err(ApiError::unforeseen(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    merge_owners(call, &mut object);
    if !applied {
        object = behaviour::own_update(call, None, object, &manager(call, options));
    }
    admission::mutate(call, Operation::Create, &mut object, None).await?;
    let generated = meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty();
    let tries = if generated { MAX_NAMES } else { 1 };
    for attempt in 1..=tries {
        // The last try needs no copy, and nearly always it is the first.
        let mut new = if attempt == tries {
            std::mem::take(&mut object)
        } else {
            object.clone()
        };
        let (reserve, keys) = prepare_new(call, &mut new, options.dry_run).await?;
        let name = meta(&new, "name").to_owned();
        admission::validate(call, Operation::Create, &new, None).await?;
        behaviour::encode(&call.def, &mut new);
        if options.dry_run {
            admission::charge(call, Operation::Create, &new, None, true).await?;
            return dry_run_create(call, new, &name).await;
        }
        convert::to_storage(&call.def, &mut new);
        let suffix = call.suffix(&name);
        match store_new(call, &suffix, new, &reserve, keys).await? {
            Some(stored) => return Ok(Written::Created(stored)),
            None if attempt < tries => {}
            None => return Err(ApiError::already_exists(call.about(&name))),
        }
    }
    Err(ApiError::internal("no free name was found"))
}

async fn dry_run_create(call: &Call<'_>, mut new: Value, name: &str) -> Result<Written, ApiError> {
    if call.current(name).await?.is_some() {
        return Err(ApiError::already_exists(call.about(name)));
    }
    metadata_mut(&mut new).shift_remove("resourceVersion");
    admission::tell_impact(call, Operation::Create, &mut new, None);
    Ok(Written::DryRun {
        object: new,
        created: true,
    })
}

/// Stores it; `None` if the name is taken. A reservation that somebody else took meanwhile is chosen anew.
async fn store_new(
    call: &Call<'_>,
    suffix: &ObjectSuffix,
    mut object: Value,
    reserve: &admission::Reserve,
    mut keys: Reservations,
) -> Result<Option<Arc<Object>>, ApiError> {
    let storage = &call.kernel.storage;
    for _ in 0..MAX_TRIES {
        let mut charged = admission::charge(call, Operation::Create, &object, None, false).await?;
        if storage.kind(&call.def).get(suffix.as_str()).is_some() {
            return Ok(None);
        }
        keys.replace = std::mem::take(&mut charged.replacements);
        keys.unchanged = admission::rely_on(call, &object)?;
        let contended = !keys.take.is_empty() || !keys.replace.is_empty() || !keys.unchanged.is_empty();
        match storage.put(&call.def, suffix, &object, 0, keys).await? {
            Outcome::Done(stored) => return Ok(Some(stored)),
            Outcome::Lost if contended => keys = reserve.assign(call, &mut object).await?,
            Outcome::Lost => return Ok(None),
        }
    }
    Err(ApiError::conflict(
        call.about(meta(&object, "name")),
        "too many writers want the same addresses, charge the same quota or bind the same APIs",
    ))
}

async fn prepare_new(
    call: &Call<'_>,
    object: &mut Value,
    dry_run: bool,
) -> Result<(admission::Reserve, Reservations), ApiError> {
    let random = &call.kernel.random;
    let uid = random.uuid();
    let name_suffix = if meta(object, "generateName").is_empty() {
        String::new()
    } else {
        random.name_suffix()
    };
    object_meta::prepare_create(
        object,
        &object_meta::Birth {
            now: &call.now,
            uid: &uid,
            name_suffix: &name_suffix,
        },
    );
    let reserve = admission::reserve(call, object, None, dry_run)?;
    let keys = reserve.assign(call, object).await?;
    behaviour::prepare_create(call, object);
    state_home(call, object);
    state_claims(call, object)?;
    admission::complete(call, Operation::Create, object);
    let errors = behaviour::validate_create(call, object);
    if !errors.is_empty() {
        let name = meta(object, "name");
        return Err(ApiError::invalid(call.about_kind(name), &errors));
    }
    for warning in behaviour::warnings(call, object, None) {
        call.warn(warning);
    }
    Ok((reserve, keys))
}

/// Makes an object say which workspace it is in, whatever its author says: watchers over all workspaces go by it. Objects
/// of the root workspace are as Kubernetes' own, so they say nothing; but they cannot lie either.
fn state_home(call: &Call<'_>, object: &mut Value) {
    let is_foreign_to_kubernetes = call.def.group.ends_with(".kcp.io");
    let may_be_silent = call.cluster == ROOT_CLUSTER && !is_foreign_to_kubernetes;
    if is_foreign_to_kubernetes {
        state_path(call, object);
    }
    let stated = &object["metadata"]["annotations"][annotation::CLUSTER];
    if *stated == *call.cluster || (stated.is_null() && may_be_silent) {
        return;
    }
    annotate(object, annotation::CLUSTER, call.cluster.into());
}

/// Labels an object for the providers that the workspace lets see it, and for nobody else. What a provider writes must be
/// something that it may see.
fn state_claims(call: &Call<'_>, object: &mut Value) -> Result<(), ApiError> {
    let labelled = object["metadata"]["labels"]
        .as_object()
        .is_some_and(|labels| labels.keys().any(|key| key.starts_with(label::CLAIMED_PREFIX)));
    let consents = call.kernel.bound.consents(call.cluster);
    let answer = call.visit.and_then(|visit| visit.answer.as_ref());
    if consents.is_empty() && !labelled && answer.is_none() {
        return Ok(());
    }
    let name = meta(object, "name").to_owned();
    let metadata = metadata_mut(object);
    let mut labels = match metadata.get("labels") {
        Some(Value::Object(labels)) => labels.clone(),
        _ => serde_json::Map::new(),
    };
    if let Some(answer) = answer {
        claims::admit_write(answer, &mut labels)
            .map_err(|why| ApiError::forbidden(call.about(&name), why))?;
    }
    let own = Value::Object(labels.clone());
    let consents = consents.iter().map(AsRef::as_ref);
    let expected = claims::labels_for(consents, &call.def.group, &call.def.resource, &own);
    claims::set_labels(&mut labels, &expected);
    if labels.is_empty() {
        metadata.shift_remove("labels");
    } else {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    Ok(())
}

/// What others refer to by the path of its workspace says that path.
fn state_path(call: &Call<'_>, object: &mut Value) {
    const REFERRED_TO: [&str; 4] = ["logicalclusters", "workspacetypes", "apiexports", "apibindings"];
    if !REFERRED_TO.contains(&call.def.resource.as_str()) {
        return;
    }
    // A new LogicalCluster is not in the tree yet, and brings its path.
    let is_new = call.kernel.workspaces.get(call.cluster).is_none() && call.cluster != ROOT_CLUSTER;
    if !is_new {
        let path = call.kernel.workspaces.path(call.cluster);
        annotate(object, annotation::PATH, path.into());
    }
}

fn annotate(object: &mut Value, key: &str, value: Value) {
    let annotations = metadata_mut(object)
        .entry("annotations")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), value);
    }
}

/// A change of an existing object: from what it is to what it shall be, both in the version of the request.
pub(crate) struct Update<'c> {
    /// Name of the object.
    pub(crate) name: &'c str,
    /// Computes the new object. It may be called again with a newer one.
    pub(crate) change: &'c mut (dyn FnMut(&Value) -> Result<Value, ApiError> + Send),
    /// The change has recorded field ownership itself (server-side apply).
    pub(crate) owned: bool,
    /// A resourceVersion in the new object is the client's condition (not so where it comes from a patched copy).
    pub(crate) conditional: bool,
}

/// Changes an object.
pub(crate) async fn update(
    call: &Call<'_>,
    options: &WriteOptions,
    update: Update<'_>,
) -> Result<Written, ApiError> {
    for attempt in 0..MAX_CHANGES {
        if attempt >= PATIENT_FROM {
            let most = Duration::from_millis(attempt.min(20));
            tokio::time::sleep(call.kernel.random.spread(most)).await;
        }
        let current = call.existing(update.name).await?;
        let old = present::value(&call.def, &current)?;
        let mut new = (update.change)(&old)?;
        let pinned = check_preconditions(call, update.name, &old, &mut new, update.conditional)?;
        merge_owners(call, &mut new);
        if !update.owned {
            new = behaviour::own_update(call, Some(&old), new, &manager(call, options));
        }
        admission::mutate(call, Operation::Update, &mut new, Some(&old)).await?;
        match commit(call, options, &current, &old, new).await? {
            Some(written) => return Ok(written),
            None if pinned => return Err(ApiError::modified(call.about(update.name))),
            None => {}
        }
    }
    Err(ApiError::modified(call.about(update.name)))
}

/// Compares names and versions; `true` if the client insists on the version it has seen.
fn check_preconditions(
    call: &Call<'_>,
    name: &str,
    old: &Value,
    new: &mut Value,
    conditional: bool,
) -> Result<bool, ApiError> {
    let given = meta(new, "name");
    if !given.is_empty() && given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    let namespace = call.namespace();
    object_meta::match_namespace(new, Some(namespace).filter(|n| !n.is_empty()))
        .map_err(ApiError::bad_request)?;
    let uid = meta(new, "uid");
    // A patch states no conditions but its resourceVersion; its uid is judged like any field.
    if conditional && !uid.is_empty() && uid != meta(old, "uid") {
        return Err(ApiError::conflict(
            call.about(name),
            format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                meta(old, "uid")
            ),
        ));
    }
    let (wanted, have) = (
        meta(new, "resourceVersion"),
        meta(old, "resourceVersion").to_owned(),
    );
    if wanted.is_empty() || wanted == "0" {
        if !behaviour::allows_unconditional_update(&call.def) && conditional {
            let errors = [FieldError::invalid(
                &Path::new("metadata").child("resourceVersion"),
                0,
                "must be specified for an update",
            )];
            // Upstream names a custom resource here, and the kind of its own.
            let about = if call.def.custom().is_some() {
                call.about(name)
            } else {
                call.about_kind(name)
            };
            return Err(ApiError::invalid(about, &errors));
        }
        metadata_mut(new).insert("resourceVersion".to_owned(), have.into());
        return Ok(false);
    }
    if wanted != have && wanted.parse::<u64>().is_err() {
        return Err(ApiError::unforeseen(number_fault("ParseUint", wanted)));
    }
    if wanted != have {
        return Err(ApiError::modified(call.about(name)));
    }
    Ok(conditional)
}

/// Prepares, validates and stores; `None` if somebody else was quicker.
async fn commit(
    call: &Call<'_>,
    options: &WriteOptions,
    current: &Arc<Object>,
    old: &Value,
    mut new: Value,
) -> Result<Option<Written>, ApiError> {
    let name = meta(old, "name");
    object_meta::prepare_update(&mut new, old);
    let mut keys = admission::reserve(call, &mut new, Some(old), options.dry_run)?
        .assign(call, &mut new)
        .await?;
    behaviour::prepare_update(call, &mut new, old);
    state_home(call, &mut new);
    state_claims(call, &mut new)?;
    admission::complete(call, Operation::Update, &mut new);
    let errors = behaviour::validate_update(call, &new, old);
    if !errors.is_empty() {
        return Err(ApiError::invalid(call.about_kind(name), &errors));
    }
    for warning in behaviour::warnings(call, &new, Some(old)) {
        call.warn(warning);
    }
    admission::validate(call, Operation::Update, &new, Some(old)).await?;
    behaviour::encode(&call.def, &mut new);
    managed_fields::keep_unchanged_timestamps(&mut new, old);
    if options.dry_run {
        admission::charge(call, Operation::Update, &new, Some(old), true).await?;
        admission::tell_impact(call, Operation::Update, &mut new, Some(old));
        return Ok(Some(Written::DryRun {
            object: new,
            created: false,
        }));
    }
    let suffix = call.suffix(name);
    let storage = &call.kernel.storage;
    if is_finished(&new) {
        let release = admission::release(call, &new);
        return Ok(
            match storage.delete(&call.def, &suffix, current, release).await? {
                Outcome::Done(last) => Some(Written::Deleted(last)),
                Outcome::Lost => None,
            },
        );
    }
    if same_but_version(&new, old) {
        return Ok(Some(Written::Updated(Arc::clone(current))));
    }
    convert::to_storage(&call.def, &mut new);
    for _ in 0..MAX_TRIES {
        let mut charged = admission::charge(call, Operation::Update, &new, Some(old), false).await?;
        keys.replace = std::mem::take(&mut charged.replacements);
        let charges = !keys.replace.is_empty();
        match storage
            .put(&call.def, &suffix, &new, current.revision(), keys.clone())
            .await?
        {
            Outcome::Done(stored) => return Ok(Some(Written::Updated(stored))),
            // Only the quota has changed: that is no conflict of the client's.
            Outcome::Lost if charges && is_current(storage, call, &suffix, current) => {}
            Outcome::Lost => return Ok(None),
        }
    }
    Ok(None)
}

/// Whether an object is still the one that was read.
fn is_current(storage: &Storage, call: &Call<'_>, suffix: &ObjectSuffix, read: &Object) -> bool {
    let now = storage.kind(&call.def).get(suffix.as_str());
    now.is_some_and(|now| now.revision() == read.revision())
}

fn same_but_version(new: &Value, old: &Value) -> bool {
    // Both carry the old resourceVersion here, so plain equality is the question.
    new == old
}

/// Whether an object is being deleted and nothing holds it back any more.
pub(crate) fn is_finished(object: &Value) -> bool {
    let held_by_namespace = object["kind"] == "Namespace"
        && object["apiVersion"] == "v1"
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|f| !f.is_empty());
    !meta(object, "deletionTimestamp").is_empty()
        && !has_items(object, "finalizers")
        && !held_by_namespace
        && object["metadata"]["deletionGracePeriodSeconds"]
            .as_u64()
            .unwrap_or(0)
            == 0
}

/// Writes an object that the kernel itself has changed (deletion marks), as it is.
pub(crate) async fn put_as_is(
    call: &Call<'_>,
    current: &Object,
    mut object: Value,
) -> Result<Option<Arc<Object>>, ApiError> {
    let suffix = call.suffix(meta(&object, "name"));
    convert::to_storage(&call.def, &mut object);
    let storage = &call.kernel.storage;
    Ok(
        match storage
            .put(
                &call.def,
                &suffix,
                &object,
                current.revision(),
                Reservations::default(),
            )
            .await?
        {
            Outcome::Done(stored) => Some(stored),
            Outcome::Lost => None,
        },
    )
}
