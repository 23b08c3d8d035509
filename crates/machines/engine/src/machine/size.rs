//! Sizes and tastes that machines name: found, kept as they were when first used, and written down in the status.
//!
//! A machine keeps the size that it has, also when the object that describes it changes: a copy is made when the size is
//! first used, and again only when the machine names another one.

use fairway_api::Kind;
use fairway_api::kubevirt::VIRTUAL_MACHINE;
use fairway_controller::{Failure, Requests};
use fairway_machines_plan::instancetype::Conflicts;
use fairway_machines_plan::view::{InstancetypeSpec, PreferenceSpec, ViewError};
use serde_json::{Value, json};
use thiserror::Error;

use crate::objects::{
    CLUSTER_INSTANCETYPE, CLUSTER_PREFERENCE, INSTANCETYPE, PREFERENCE, everywhere, ours, owner, path, read,
    revisions, text,
};

/// Sizes or tastes.
#[derive(Debug)]
pub(crate) struct Family {
    /// Where a machine names one.
    pub(crate) field: &'static str,
    /// Where its status says which.
    pub(crate) reference: &'static str,
    /// Of a namespace.
    own: Kind,
    /// For everybody.
    shared: Kind,
    /// Upstream's word for the place where a machine names one.
    matcher: &'static str,
}

pub(crate) static SIZES: Family = Family {
    field: "instancetype",
    reference: "instancetypeRef",
    own: INSTANCETYPE,
    shared: CLUSTER_INSTANCETYPE,
    matcher: "InstancetypeMatcher",
};

pub(crate) static TASTES: Family = Family {
    field: "preference",
    reference: "preferenceRef",
    own: PREFERENCE,
    shared: CLUSTER_PREFERENCE,
    matcher: "PreferenceMatcher",
};

/// Why a machine has no size.
#[derive(Debug, Error)]
pub(crate) enum SizeError {
    /// It names none that exists, or says nothing that can be understood.
    #[error("{0}")]
    Wrong(String),
    /// It says itself what its size says.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// The size is not what its kind says.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The API did not answer.
    #[error("{}", .0.sentence())]
    Api(#[from] Failure),
}

/// What a machine's size and taste are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes {
    /// Its size.
    pub(crate) size: Option<InstancetypeSpec>,
    /// Its taste.
    pub(crate) taste: Option<PreferenceSpec>,
    /// `status.instancetypeRef`; null without a size.
    pub(crate) size_reference: Value,
    /// `status.preferenceRef`; null without a taste.
    pub(crate) taste_reference: Value,
}

impl Family {
    fn kind(&self, word: &str) -> Result<&Kind, SizeError> {
        let word = word.to_lowercase();
        let is = |kind: &Kind| kind.kind.to_lowercase() == word || kind.plural == word;
        match () {
            () if word.is_empty() || is(&self.shared) => Ok(&self.shared),
            () if is(&self.own) => Ok(&self.own),
            () => Err(SizeError::Wrong(format!(
                "got unexpected kind in {}: {word}",
                self.matcher
            ))),
        }
    }
}

/// Finds what a machine's size and taste are. `vm` is a copy that is made to name what was found.
pub(crate) async fn resolve(vm: &mut Value, requests: &Requests) -> Result<Sizes, SizeError> {
    let (size, size_reference) = find(&SIZES, vm, requests).await?;
    let (taste, taste_reference) = find(&TASTES, vm, requests).await?;
    Ok(Sizes {
        size: size.map(|it| view(SIZES.shared.kind, &it)).transpose()?,
        taste: taste.map(|it| view(TASTES.shared.kind, &it)).transpose()?,
        size_reference,
        taste_reference,
    })
}

/// The same for a machine that is only asked about: no copy is kept.
pub(crate) async fn glimpsed(vm: &Value, requests: &Requests) -> Result<Sizes, SizeError> {
    let size = named(&SIZES, vm, requests).await?;
    let taste = named(&TASTES, vm, requests).await?;
    Ok(Sizes {
        size: size.map(|it| view(SIZES.shared.kind, &it)).transpose()?,
        taste: taste.map(|it| view(TASTES.shared.kind, &it)).transpose()?,
        ..Sizes::default()
    })
}

async fn named(family: &Family, vm: &Value, requests: &Requests) -> Result<Option<Value>, SizeError> {
    let (matcher, namespace) = (&vm["spec"][family.field], text(vm, "/metadata/namespace"));
    let (name, revision) = (text(matcher, "/name"), text(matcher, "/revisionName"));
    if !revision.is_empty() {
        return copy(revision, namespace, requests).await.map(Some);
    }
    if name.is_empty() {
        return Ok(None);
    }
    let mut object = original(family, text(matcher, "/kind"), name, namespace, requests).await?;
    Ok(Some(object["spec"].take()))
}

fn view<T: serde::de::DeserializeOwned>(kind: &'static str, spec: &Value) -> Result<T, ViewError> {
    fairway_machines_plan::view::read(kind, spec)
}

/// What a machine that was started had: its spec says which copies.
pub(crate) async fn recorded(spec: &Value, namespace: &str, requests: &Requests) -> Result<Sizes, SizeError> {
    let size = recorded_copy(&SIZES, spec, namespace, requests).await?;
    let taste = recorded_copy(&TASTES, spec, namespace, requests).await?;
    Ok(Sizes {
        size: size.map(|it| view(SIZES.shared.kind, &it)).transpose()?,
        taste: taste.map(|it| view(TASTES.shared.kind, &it)).transpose()?,
        ..Sizes::default()
    })
}

async fn recorded_copy(
    family: &Family,
    spec: &Value,
    namespace: &str,
    requests: &Requests,
) -> Result<Option<Value>, SizeError> {
    match text(&spec[family.field], "/revisionName") {
        "" => Ok(None),
        name => copy(name, namespace, requests).await.map(Some),
    }
}

async fn find(
    family: &Family,
    vm: &mut Value,
    requests: &Requests,
) -> Result<(Option<Value>, Value), SizeError> {
    let matcher = vm["spec"][family.field].clone();
    if !matcher.is_object() {
        return Ok((None, Value::Null));
    }
    let (name, kind) = (text(&matcher, "/name"), text(&matcher, "/kind"));
    if name.is_empty() {
        // What a volume says is found out when the machine is written.
        return Err(SizeError::Wrong(format!(
            "spec.{} names nothing; give a name, or a volume that knows one",
            family.field
        )));
    }
    let mut reference = next_reference(&vm["status"][family.reference], &matcher);
    let namespace = text(vm, "/metadata/namespace").to_owned();
    if text(&reference, "/controllerRevisionRef/name").is_empty() {
        let object = original(family, kind, name, &namespace, requests).await?;
        let stored = store(vm, &object, &namespace, requests).await?;
        reference["controllerRevisionRef"] = json!({"name": stored});
    }
    let revision = text(&reference, "/controllerRevisionRef/name").to_owned();
    let spec = copy(&revision, &namespace, requests).await?;
    vm["spec"][family.field]["revisionName"] = json!(revision);
    Ok((Some(spec), reference))
}

/// What the status says of what a machine names. Without a copy (`controllerRevisionRef`) one is to be made.
fn next_reference(before: &Value, matcher: &Value) -> Value {
    let mut next = match before.is_object() {
        true => before.clone(),
        false => json!({}),
    };
    let mut is_other = false;
    for field in ["name", "kind"] {
        let said = text(matcher, &format!("/{field}"));
        if !said.is_empty() && text(&next, &format!("/{field}")) != said {
            next[field] = json!(said);
            is_other = true;
        }
    }
    if is_other {
        drop(
            next.as_object_mut()
                .map(|it| it.shift_remove("controllerRevisionRef")),
        );
    }
    let revision = text(matcher, "/revisionName");
    if !revision.is_empty() {
        next["controllerRevisionRef"] = json!({"name": revision});
    }
    next
}

/// The object that a machine names.
async fn original(
    family: &Family,
    word: &str,
    name: &str,
    namespace: &str,
    requests: &Requests,
) -> Result<Value, SizeError> {
    let kind = family.kind(word)?;
    let place = match *kind == family.own {
        true => path(kind, namespace, name),
        false => format!("{}/{name}", everywhere(kind)),
    };
    let found = read(requests, &place).await?;
    let missing = || SizeError::Wrong(format!("{}.{} \"{name}\" not found", kind.plural, kind.group));
    let mut object = found.ok_or_else(missing)?;
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    Ok(object)
}

/// Keeps a copy of a size for a machine, and gives its name.
async fn store(
    vm: &Value,
    object: &Value,
    namespace: &str,
    requests: &Requests,
) -> Result<String, SizeError> {
    if let Ok(size) = view::<InstancetypeSpec>(INSTANCETYPE.kind, &object["spec"])
        && [INSTANCETYPE.kind, CLUSTER_INSTANCETYPE.kind].contains(&text(object, "/kind"))
    {
        let mut template = vm["spec"]["template"].clone();
        fairway_machines_plan::instancetype::expand(&mut template, Some(&size), None)?;
    }
    let revision = revision(vm, object);
    let name = text(&revision, "/metadata/name").to_owned();
    if !requests.create(&ours(&revisions(namespace)), &revision).await? {
        let there = copy(&name, namespace, requests).await?;
        if there != object["spec"] {
            let why = format!("found existing ControllerRevision with unexpected data: {name}");
            return Err(SizeError::Wrong(why));
        }
    }
    Ok(name)
}

/// The copy of a size, as an object.
fn revision(vm: &Value, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let version = text(object, "/apiVersion").rsplit('/').next().unwrap_or_default();
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    let (name, uid) = (text(metadata, "/name"), text(metadata, "/uid"));
    let mut data = object.clone();
    if let Some(fields) = data["metadata"].as_object_mut() {
        for field in [
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "managedFields",
        ] {
            fields.shift_remove(field);
        }
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{}-{name}-{version}-{uid}-{generation}", text(vm, "/metadata/name")),
            "namespace": vm["metadata"]["namespace"],
            "ownerReferences": [owner(&VIRTUAL_MACHINE, vm)],
            "labels": {
                "instancetype.kubevirt.io/object-generation": generation.to_string(),
                "instancetype.kubevirt.io/object-kind": object["kind"],
                "instancetype.kubevirt.io/object-name": name,
                "instancetype.kubevirt.io/object-uid": uid,
                "instancetype.kubevirt.io/object-version": version,
            },
        },
        "data": data,
        "revision": 0,
    })
}

/// The spec that a copy holds.
async fn copy(name: &str, namespace: &str, requests: &Requests) -> Result<Value, SizeError> {
    let found = read(requests, &format!("{}/{name}", revisions(namespace))).await?;
    let missing = || SizeError::Wrong(format!("controllerrevisions.apps \"{name}\" not found"));
    let spec = found.ok_or_else(missing)?["data"]["spec"].take();
    match spec.is_object() {
        true => Ok(spec),
        false => Err(SizeError::Wrong(format!(
            "ControllerRevision {name} holds no instancetype or preference; correct the machine's revisionName"
        ))),
    }
}

#[cfg(test)]
mod tests;
