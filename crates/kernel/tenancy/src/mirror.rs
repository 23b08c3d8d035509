//! What is to be done about an object of a workspace and its copy on the service cluster.
//!
//! The original rules: its content goes down, the copy's status comes up, and when the original is deleted the copy goes
//! first. A copy is only ever that of one original; what belongs to another, or to nobody known, is not touched.

use serde_json::{Map, Value, json};

use crate::meta::Meta;
use crate::mutation::Mutator;
use crate::naming::{AGENT_LABEL, CLUSTER_LABEL, FINALIZER, Original, original_of};
use crate::published::{PublishedResource, Served, stripped};

/// The next thing to do about an original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is being deleted, and no business of the agent's.
    Ignore,
    /// Write the finalizer first, so that the copy cannot be orphaned.
    Accept,
    /// Make the copy, or make it equal.
    Place,
    /// The copy is being deleted by somebody on the service cluster: it comes again when that has happened.
    Await,
    /// Delete what belongs to the copy, then the copy.
    Remove,
    /// The copy is gone: let the original go.
    Release,
}

/// Decides. The copy must be the original's own.
pub fn next(original: &Value, copy: Option<&Value>) -> Step {
    let meta = Meta::read(original);
    let held = meta.has_finalizer(FINALIZER);
    let copy_deleting = copy.map(|it| Meta::read(it).is_deleting());
    match (meta.is_deleting(), held, copy_deleting) {
        (true, false, _) => Step::Ignore,
        (true, true, None) => Step::Release,
        (true, true, Some(false)) => Step::Remove,
        (true, true, Some(true)) | (false, true, Some(true)) => Step::Await,
        (false, false, _) => Step::Accept,
        (false, true, _) => Step::Place,
    }
}

/// Whose an object on the service cluster is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The original's copy. If somebody took its labels away, the annotations still say so.
    Own,
    /// Somebody else's: whose, in words.
    Other(String),
}

/// Tells whose an object is that was found where the copy should be. `exclusive`: nobody but this workspace has copies in
/// that namespace, so that annotations are enough where somebody has lost the labels.
pub fn ownership(found: &Value, original: &Original<'_>, exclusive: bool) -> Ownership {
    let meta = Meta::read(found);
    let labels = original.labels();
    if labels
        .iter()
        .all(|(key, value)| meta.labels.get(*key) == Some(value))
    {
        return Ownership::Own;
    }
    let unlabelled = !meta.labels.contains_key(CLUSTER_LABEL);
    let mut annotations = original.annotations(false).into_iter();
    if exclusive && unlabelled && annotations.all(|(key, value)| meta.annotation(key) == Some(value.as_str()))
    {
        return Ownership::Own;
    }
    let cluster = meta.labels.get(CLUSTER_LABEL);
    Ownership::Other(match (original_of(found), cluster) {
        (Some((cluster, namespace, name)), _) if namespace.is_empty() => {
            format!("it is the copy of {name} in workspace {cluster}")
        }
        (Some((cluster, namespace, name)), _) => {
            format!("it is the copy of {namespace}/{name} in workspace {cluster}")
        }
        (None, Some(cluster)) => format!("it belongs to workspace {cluster}"),
        (None, None) => "it is no copy of this agent's".to_owned(),
    })
}

/// What a copy is made with.
pub struct Copying<'a> {
    /// The publication.
    pub published: &'a PublishedResource,
    /// Its rewrite rules.
    pub mutator: &'a Mutator,
    /// The kind on the service cluster.
    pub local: &'a Served,
    /// The agent.
    pub agent: &'a str,
}

impl Copying<'_> {
    /// The copy as it is to be applied: every field that the agent stands for. `place` is its namespace and name,
    /// `existing` what is there.
    pub fn desired(
        &self,
        original: &Original<'_>,
        place: (&str, &str),
        existing: Option<&Value>,
    ) -> Result<Value, String> {
        let skeleton = retyped(original.object, self.local, place);
        let mutated = self
            .mutator
            .spec(original.object, existing.unwrap_or(&skeleton))
            .map_err(|error| format!("failed to apply spec mutation rules: {error}"))?;
        let mut copy = retyped(&stripped(&mutated), self.local, place);
        if let Some(fields) = copy.as_object_mut() {
            fields.shift_remove("status");
        }
        let meta = &mut copy["metadata"];
        for (key, value) in original.labels() {
            meta["labels"][key] = json!(value);
        }
        meta["labels"][AGENT_LABEL] = json!(self.agent);
        for (key, value) in original.annotations(self.published.with_path) {
            meta["annotations"][key] = json!(value);
        }
        if let Some(uid) = existing.and_then(|it| it.pointer("/metadata/uid")) {
            // So that an object that took the copy's place meanwhile is not changed instead.
            meta["uid"] = uid.clone();
        }
        Ok(copy)
    }

    /// The status that the original should have, if it has another.
    pub fn status(&self, original: &Value, copy: &Value) -> Result<Option<Value>, String> {
        let mutated = self
            .mutator
            .status(copy, original)
            .map_err(|error| format!("failed to apply status mutation rules: {error}"))?;
        let of = |object: &Value| match object.get("status") {
            None | Some(Value::Null) => json!({}),
            Some(status) => status.clone(),
        };
        let status = of(&mutated);
        Ok((status != of(original)).then_some(status))
    }
}

/// The same content as another kind, under another name.
pub(crate) fn retyped(object: &Value, kind: &Served, (namespace, name): (&str, &str)) -> Value {
    let mut copy = Map::from_iter([
        ("apiVersion".to_owned(), json!(kind.api_version())),
        ("kind".to_owned(), json!(kind.kind)),
    ]);
    for (key, value) in object.as_object().into_iter().flatten() {
        copy.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let mut copy = Value::Object(copy);
    if !copy["metadata"].is_object() {
        copy["metadata"] = json!({});
    }
    if let Some(meta) = copy["metadata"].as_object_mut() {
        meta.shift_remove("namespace");
        if kind.namespaced {
            meta.insert("namespace".to_owned(), json!(namespace));
        }
        meta.insert("name".to_owned(), json!(name));
        // Rules may have put anything there; labels and annotations must be maps to be written to.
        for field in ["labels", "annotations"] {
            if meta.get(field).is_some_and(|it| !it.is_object()) {
                meta.shift_remove(field);
            }
        }
    }
    copy
}

#[cfg(test)]
mod tests;
