//! Kinds that the domains of this program bring into every workspace.
//!
//! Like the kinds of workspaces they are custom kinds under the identity of built-in ones: no workspace stores anything to
//! have them, and one prefix holds all workspaces' objects. Unlike those they give way: a workspace that defines or binds a
//! kind of the same name has that one, and this program leaves its objects alone. That is for whoever runs the kind's own
//! controllers, and for workspaces that had such a definition before this program brought the kind. A definition that says
//! nothing of the sort is only somebody's habit of installing it: it is accepted, and serves nothing.

use std::sync::Arc;

use fairway_admission::Admission;
use serde_json::{Value, json};

use super::compile::provided;
use super::schema::MakeSchema;
use crate::admission::Operation;
use crate::cache::Scope;
use crate::key::scope_prefix;
use crate::registry::{Layer, ResourceDef};
use crate::rest::call::{Call, meta, metadata_mut};
use crate::status::ApiError;

/// Who serves a kind that the program brings: `fairway` or `definition`.
pub(crate) const SERVED_BY: &str = "fairway.dev/served-by";
const PROGRAM: &str = "fairway";
const DEFINITION: &str = "definition";

/// A kind of a domain; all its versions have one schema.
pub struct ProvidedKind {
    /// Its definition in the form of a CRD, without schema.
    pub head: Value,
    /// Its schema.
    pub schema: MakeSchema,
    /// The whole definition, for documents.
    pub definition: MakeSchema,
    /// Changes when the definition does.
    pub fingerprint: u64,
    /// Whether its objects are encrypted at rest.
    pub sealed: bool,
    /// What completes and judges its objects, beyond the schema.
    pub domain: Option<Arc<dyn Admission>>,
}

/// The layer of these kinds.
pub(crate) fn provided_layer(kinds: &[ProvidedKind]) -> Layer {
    Layer::new(kinds.iter().flat_map(provided))
}

/// Whether a definition is there by name only, and the program serves the kind.
pub(crate) fn is_adopted(crd: &Value) -> bool {
    crd["metadata"]["annotations"][SERVED_BY] == PROGRAM
}

/// The kind that the program brings under the name that a definition asks for.
fn brought<'k>(call: &Call<'k>, crd: &Value) -> Option<&'k ResourceDef> {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
    let mut named = call.kernel.apis.provided().iter();
    named
        .find(|def| def.group == group && def.resource == plural)
        .map(|def| &**def)
}

/// Decides who serves the kind of a definition, when it comes; later nobody changes it.
pub(crate) fn settle(call: &Call<'_>, operation: Operation, crd: &mut Value, old: Option<&Value>) {
    if brought(call, crd).is_none() || call.subresource().is_some() {
        return;
    }
    let by_program = match (operation, old) {
        (Operation::Create, _) => crd["metadata"]["annotations"][SERVED_BY] != DEFINITION,
        (Operation::Update, Some(old)) => is_adopted(old),
        _ => return,
    };
    let by = if by_program { PROGRAM } else { DEFINITION };
    let annotations = metadata_mut(crd).entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[SERVED_BY] = by.into();
}

/// What speaks against a new definition: objects that would no longer be seen.
pub(crate) fn objection(call: &Call<'_>, crd: &Value) -> Option<ApiError> {
    let def = brought(call, crd).filter(|_| !is_adopted(crd))?;
    let objects = call.kernel.storage.cache.kind(def.prefix.as_str());
    let (found, _) = objects.snapshot(&Scope::Within(scope_prefix(call.cluster, None).into()), 0);
    let count = found.len();
    (count > 0).then(|| {
        let why = format!(
            "this workspace has {count} {}.{} that Fairway serves, and a definition with the annotation \
             {SERVED_BY}={DEFINITION} would hide them; delete them first, or create the definition without the annotation",
            def.resource, def.group
        );
        ApiError::forbidden(call.about(meta(crd, "name")), why)
    })
}

/// What to tell somebody who brings a definition.
pub(crate) fn warning(crd: &Value) -> Option<String> {
    let name = meta(crd, "name");
    match crd["metadata"]["annotations"][SERVED_BY].as_str()? {
        PROGRAM => Some(format!(
            "Fairway serves {name} in every workspace; this definition is kept and has no effect. To serve the kind from it \
             and run other controllers on it, create it with the annotation {SERVED_BY}={DEFINITION}"
        )),
        DEFINITION => Some(format!(
            "Fairway does not act on {name} in this workspace while this definition is there"
        )),
        _ => None,
    }
}
