//! The end of a binding: the objects of what it brought go with it.

use serde_json::{Value, json};

use super::{ApiBinding, BoundResource};
use crate::conditions::Severity;
use crate::export::ApiExport;
use crate::names::finalizer;

const KIND: &str = "BindingResourceDeleteSuccess";

/// What is left of a bound resource.
pub struct Remaining<'a> {
    /// The API group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// How many objects are left.
    pub objects: usize,
    /// Finalizers, and how many of the objects they hold.
    pub finalizers: &'a [(String, usize)],
}

/// What is to be done about a binding that is being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// Resources whose objects are to be deleted, with the identity under which they are stored.
    pub delete: Vec<BoundResource>,
    /// The status, if it is to change.
    pub status: Option<Value>,
    /// Finalizers to write: nothing holds the binding any more.
    pub finalizers: Option<Vec<String>>,
}

/// Decides. `remaining` are bound resources with objects left; `successors` other bindings of the workspace with their
/// exports: where one of them will bring the same schema under the same identity, the objects are left to it.
pub fn decide_deletion(
    binding: &ApiBinding,
    successors: &[(&ApiBinding, &ApiExport)],
    remaining: &[Remaining<'_>],
    now: &str,
) -> Deletion {
    let adopted = |resource: &BoundResource| {
        successors.iter().any(|(other, export)| {
            other.meta.name != binding.meta.name
                && !other.meta.is_deleting()
                && export.identity_hash == resource.schema.identity_hash
                && export.resources.iter().any(|it| {
                    it.group == resource.group
                        && it.name == resource.resource
                        && it.schema == resource.schema.name
                })
        })
    };
    let left: Vec<(&BoundResource, &Remaining<'_>)> = binding
        .bound
        .iter()
        .filter(|it| !adopted(it))
        .filter_map(|it| {
            let left = remaining
                .iter()
                .find(|left| left.group == it.group && left.resource == it.resource && left.objects > 0)?;
            Some((it, left))
        })
        .collect();
    let mut conditions = binding.conditions.clone();
    let mut held: Vec<String> = Vec::new();
    for (name, count) in left.iter().flat_map(|(_, left)| left.finalizers) {
        held.push(format!("{name} in {count} resource instances"));
    }
    held.sort();
    if !held.is_empty() {
        let message = format!(
            "Some content in the workspace has finalizers remaining: {}",
            held.join(", ")
        );
        conditions.mark_false(KIND, "SomeFinalizersRemain", Severity::Error, &message, now);
    } else if !left.is_empty() {
        let mut parts: Vec<String> = left
            .iter()
            .map(|(_, left)| {
                format!(
                    "{}.{} has {} resource instances",
                    left.resource, left.group, left.objects
                )
            })
            .collect();
        parts.sort();
        let message = format!("Some resources are remaining: {}", parts.join(", "));
        conditions.mark_false(KIND, "SomeResourcesRemain", Severity::Error, &message, now);
    } else {
        conditions.mark_true(KIND, now);
    }
    let done = left.is_empty() && binding.meta.has_finalizer(finalizer::API_BINDING);
    let status = (conditions != binding.conditions).then(|| {
        let mut status = binding.status.clone();
        if !status.is_object() {
            status = json!({});
        }
        status["conditions"] = conditions.to_value();
        status
    });
    Deletion {
        delete: left.iter().map(|(resource, _)| (*resource).clone()).collect(),
        status,
        finalizers: done.then(|| {
            let mut finalizers = binding.meta.finalizers.clone();
            finalizers.retain(|it| it != finalizer::API_BINDING);
            finalizers
        }),
    }
}
