//! APIBindings: what a workspace takes from an export, and how far it got.
//!
//! A binding goes from nothing over `Binding` to `Bound` and stays there. Later trouble (the export vanishes, a schema
//! changes into a conflict) is told in conditions; what is bound stays served, because objects of it exist.

mod deletion;
mod permission;
mod settled;

pub use self::deletion::{Deletion, Remaining, decide_deletion};
pub use self::settled::{Fingerprint, offered};
pub(crate) use self::settled::{fingerprint, is_without_complaint};

use std::sync::Arc;

use fairway_kernel_schema::crd::Names;
use fairway_kernel_schema::field::{FieldError, Path};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::claims::{Answer, Claim};
use crate::cluster::ClusterId;
use crate::conditions::{Conditions, Severity};
use crate::encode;
use crate::export::ApiExport;
use crate::locks::{Holder, Locks};
use crate::meta::{Meta, part};
use crate::schema::ApiResourceSchema;

/// How much of an export's name goes into the name of a binding that the system makes.
const MAX_NAME_PREFIX: usize = 253 - 1 - 5;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ExportReference {
    path: String,
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Reference {
    export: Option<ExportReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    reference: Reference,
    permission_claims: Vec<Answer>,
}

/// The schema of a bound resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundSchema {
    /// Its name.
    pub name: String,
    /// Its UID.
    #[serde(rename = "UID")]
    pub uid: String,
    /// The identity under which objects are stored.
    pub identity_hash: String,
}

/// A resource that a binding brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BoundResource {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// The schema.
    pub schema: BoundSchema,
    /// Versions in which objects were ever stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage_versions: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(rename = "apiExportClusterName")]
    export_cluster: String,
    bound_resources: Vec<BoundResource>,
    phase: String,
}

/// An APIBinding (`v1alpha2`).
#[derive(Clone, Debug)]
pub struct ApiBinding {
    /// Its metadata.
    pub meta: Meta,
    /// What it brings.
    pub bound: Vec<BoundResource>,
    /// What it answers to the export's claims.
    pub answers: Vec<Answer>,
    /// `Binding`, `Bound`, or nothing.
    pub phase: String,
    reference: Option<ExportReference>,
    export_cluster: Option<ClusterId>,
    conditions: Conditions,
    raw_answers: Vec<Value>,
    status: Value,
}

impl ApiBinding {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec: Spec = part(object, "spec");
        let status: Status = part(object, "status");
        let raw = object.pointer("/spec/permissionClaims").and_then(Value::as_array);
        Self {
            meta: Meta::read(object),
            bound: status.bound_resources,
            answers: spec.permission_claims,
            phase: status.phase,
            reference: spec.reference.export,
            export_cluster: ClusterId::parse(&status.export_cluster).ok(),
            conditions: Conditions::read(object),
            raw_answers: raw.cloned().unwrap_or_default(),
            status: object.get("status").cloned().unwrap_or_else(|| json!({})),
        }
    }

    /// The path (empty: its own workspace) and name of the export that it refers to.
    pub fn reference(&self) -> Option<(&str, &str)> {
        self.reference
            .as_ref()
            .map(|it| (it.path.as_str(), it.name.as_str()))
    }

    /// The workspace and name of the export, once that was found.
    pub fn export(&self) -> Option<(&ClusterId, &str)> {
        Some((self.export_cluster.as_ref()?, &self.reference.as_ref()?.name))
    }

    /// Whether it was bound to this very export.
    pub fn is_bound_to(&self, export: &ApiExport) -> bool {
        self.export().is_some_and(|(cluster, name)| {
            export.meta.cluster().as_ref() == Some(cluster) && export.meta.name == name
        })
    }

    /// Whether it got so far that a new workspace may be used.
    pub fn is_initially_bound(&self) -> bool {
        let claims_applied = self.conditions.is_true("PermissionClaimsApplied");
        self.conditions.is_true("InitialBindingCompleted")
            && (claims_applied || !self.answers.iter().any(Answer::is_accepted))
    }

    /// The identity under which a resource is stored, if the binding brings it.
    pub fn identity_of(&self, group: &str, resource: &str) -> Option<&str> {
        self.bound
            .iter()
            .find(|it| it.group == group && it.resource == resource)
            .map(|it| it.schema.identity_hash.as_str())
    }
}

/// Something that is served in a workspace already, other than what the binding in question brings.
pub struct Served<'a> {
    /// The binding that brings it, and what that is bound to, as in `root:acme:widgets`; nothing if it is a
    /// CustomResourceDefinition of the workspace.
    pub binding: Option<(&'a str, &'a str)>,
    /// The API group.
    pub group: &'a str,
    /// The names in use.
    pub names: &'a Names,
}

/// What was found.
pub struct Observed<'a> {
    /// The binding.
    pub binding: &'a ApiBinding,
    /// The workspace that it lies in.
    pub here: &'a ClusterId,
    /// The export that it refers to, if that exists.
    pub export: Option<&'a ApiExport>,
    /// An APIResourceSchema of the export's workspace.
    pub schema: &'a dyn Fn(&str) -> Option<Arc<ApiResourceSchema>>,
    /// What a schema cannot be served for, if something is wrong with it.
    pub unusable: &'a dyn Fn(&ApiResourceSchema) -> Option<String>,
    /// What the workspace serves besides.
    pub served: &'a [Served<'a>],
    /// Who holds which resource.
    pub locks: &'a Locks,
    /// The time.
    pub now: &'a str,
}

/// What is to be done about a binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What the LogicalCluster's annotation is to say. It is written before the status; if that write conflicts, observe
    /// again.
    pub locks: Option<Locks>,
    /// The status, if it is to change.
    pub status: Option<Value>,
}

/// Decides on a binding that is not being deleted.
pub fn decide(observed: &Observed<'_>) -> Plan {
    let binding = observed.binding;
    let mut next = Next {
        conditions: binding.conditions.clone(),
        bound: binding.bound.clone(),
        phase: "Binding".to_owned(),
        export_cluster: binding.export_cluster.clone(),
        locks: observed.locks.clone(),
        now: observed.now,
    };
    if binding.phase == "Bound" {
        next.phase = "Bound".to_owned();
    }
    if !next.conditions.is_true("InitialBindingCompleted")
        && next.conditions.get("InitialBindingCompleted").is_none()
    {
        next.conditions.mark_false(
            "InitialBindingCompleted",
            "WaitingForEstablished",
            Severity::Info,
            "Waiting for API(s) to be established",
            observed.now,
        );
    }
    bind(observed, &mut next);
    let mut status = permission::apply(observed, &mut next.conditions);
    next.conditions
        .summarize(&["InitialBindingCompleted"], observed.now);
    if let Some(cluster) = &next.export_cluster {
        status.insert("apiExportClusterName".to_owned(), json!(cluster.as_str()));
    }
    if !next.bound.is_empty() {
        status.insert("boundResources".to_owned(), json!(next.bound));
    }
    status.insert("phase".to_owned(), json!(next.phase));
    status.insert("conditions".to_owned(), next.conditions.to_value());
    let status = Value::Object(status);
    Plan {
        locks: (next.locks != *observed.locks).then_some(next.locks),
        status: (status != binding.status).then_some(status),
    }
}

struct Next<'a> {
    conditions: Conditions,
    bound: Vec<BoundResource>,
    phase: String,
    export_cluster: Option<ClusterId>,
    locks: Locks,
    now: &'a str,
}

impl Next<'_> {
    fn export_invalid(&mut self, reason: &str, severity: Severity, message: &str) {
        self.conditions
            .mark_false("APIExportValid", reason, severity, message, self.now);
    }

    /// The binding is behind what the export offers; while it never was complete, it is not complete either.
    fn behind(&mut self, reason: &str, message: &str) {
        let mut kinds = vec!["BindingUpToDate"];
        if !self.conditions.is_true("InitialBindingCompleted") {
            kinds.push("InitialBindingCompleted");
        }
        for kind in kinds {
            self.conditions
                .mark_false(kind, reason, Severity::Error, message, self.now);
        }
    }
}

fn bind(observed: &Observed<'_>, next: &mut Next<'_>) {
    let Some((path, name)) = observed.binding.reference() else {
        next.export_invalid(
            "APIExportInvalidReference",
            Severity::Error,
            "Missing APIExport reference",
        );
        return;
    };
    let path = if path.is_empty() {
        observed.here.as_str()
    } else {
        path
    };
    let Some(export) = observed.export else {
        let message = format!("APIExport {path}|{name} not found");
        next.export_invalid("APIExportNotFound", Severity::Error, &message);
        return;
    };
    if export.identity_hash.is_empty() {
        let message = format!("APIExport {path}|{name} is missing status.identityHash");
        next.export_invalid("MissingIdentityHash", Severity::Warning, &message);
        return;
    }
    // The objects are stored under the old identity; under another one they would be gone.
    if let Some(other) = next
        .bound
        .iter()
        .find(|it| it.schema.identity_hash != export.identity_hash)
    {
        let message = format!(
            "APIExport {path}|{name} has identity {:?}, but {} is bound with {:?}: it is not the export that was bound; delete this binding and create a new one",
            export.identity_hash, other.resource, other.schema.identity_hash
        );
        next.export_invalid("IdentityMismatch", Severity::Error, &message);
        return;
    }
    next.export_cluster = export.meta.cluster();
    let mut schemas = Vec::new();
    for resource in &export.resources {
        match (observed.schema)(&resource.schema) {
            Some(schema) if schema.versions > 1 && !schema.has_conversion => {
                let message = "Invalid APIExport. Please contact the APIExport owner to resolve";
                next.export_invalid("InternalError", Severity::Error, message);
                return;
            }
            Some(schema) => schemas.push(schema),
            None => {
                let message = format!(
                    "Invalid APIExport. Please contact the APIExport owner to resolve: APIResourceSchema {:?} not found",
                    resource.schema
                );
                next.export_invalid("InternalError", Severity::Error, &message);
                return;
            }
        }
    }
    let mut held = Vec::new();
    for schema in &schemas {
        let plural = &schema.names.plural;
        if let Err(holder) = next
            .locks
            .take(&observed.binding.meta.name, &schema.group, plural)
        {
            held.push(held_by(&schema.group, plural, &holder));
            continue;
        }
        if let Some(conflict) = naming_conflict(observed.served, schema) {
            next.conditions.mark_true("APIExportValid", next.now);
            next.behind("NamingConflicts", &format!("Unable to bind APIs: {conflict}"));
            return;
        }
        if let Some(fault) = (observed.unusable)(schema) {
            let cluster = next.export_cluster.as_ref().map_or("", ClusterId::as_str);
            let message = format!(
                "APIResourceSchema {cluster}|{} is invalid: {fault}",
                schema.meta.name
            );
            next.conditions.mark_true("APIExportValid", next.now);
            next.behind("APIResourceSchemaInvalid", &message);
            return;
        }
        take_up(&mut next.bound, schema, &export.identity_hash);
    }
    next.conditions.mark_true("APIExportValid", next.now);
    if held.is_empty() {
        next.conditions.mark_true("InitialBindingCompleted", next.now);
        next.conditions.mark_true("BindingUpToDate", next.now);
        "Bound".clone_into(&mut next.phase);
    } else {
        let message = format!(
            "Unable to bind APIs because they are bound by other APIBindings or CRDs: {}",
            held.join(", ")
        );
        next.behind("NamingConflicts", &message);
    }
}

fn held_by(group: &str, resource: &str, holder: &Holder) -> String {
    let name = if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    };
    match holder {
        Holder::Binding(binding) => format!("{name} by APIBinding {binding:?}"),
        Holder::Definition => format!("{name} by a CustomResourceDefinition"),
    }
}

/// Notes that a resource is served with this schema; versions in which it was stored before stay.
fn take_up(bound: &mut Vec<BoundResource>, schema: &ApiResourceSchema, identity: &str) {
    let known = bound
        .iter_mut()
        .find(|it| it.group == schema.group && it.resource == schema.names.plural);
    let mut versions = known
        .as_ref()
        .map(|it| it.storage_versions.clone())
        .unwrap_or_default();
    if !versions.contains(&schema.storage_version) {
        versions.push(schema.storage_version.clone());
        versions.sort();
    }
    let resource = BoundResource {
        group: schema.group.clone(),
        resource: schema.names.plural.clone(),
        schema: BoundSchema {
            name: schema.meta.name.clone(),
            uid: schema.meta.uid.clone(),
            identity_hash: identity.to_owned(),
        },
        storage_versions: versions,
    };
    match known {
        Some(known) => *known = resource,
        None => bound.push(resource),
    }
}

/// Why the names of a schema cannot be used beside what is served already.
pub fn naming_conflict(served: &[Served<'_>], schema: &ApiResourceSchema) -> Option<String> {
    let incoming = &schema.names;
    served
        .iter()
        .filter(|it| it.group == schema.group)
        .find_map(|it| {
            let words = |name: &str| {
                !name.is_empty()
                    && (it.names.plural == name
                        || it.names.singular == name
                        || it.names.short_names.iter().any(|short| short == name))
            };
            let kinds =
                |name: &str| !name.is_empty() && (it.names.kind == name || it.names.list_kind == name);
            let field = if words(&incoming.plural) {
                format!("plural={}", incoming.plural)
            } else if words(&incoming.singular) {
                format!("singular={}", incoming.singular)
            } else if incoming.short_names.iter().any(|short| words(short)) {
                format!("shortNames=[{}]", incoming.short_names.join(" "))
            } else if kinds(&incoming.kind) {
                format!("kind={}", incoming.kind)
            } else if kinds(&incoming.list_kind) {
                format!("listKind={}", incoming.list_kind)
            } else {
                return None;
            };
            let with = match it.binding {
                Some((name, export)) => format!("APIBinding {name:?} bound to APIExport {export}"),
                None => format!("CustomResourceDefinition \"{}.{}\"", it.names.plural, it.group),
            };
            Some(format!(
                "naming conflict with {with}: spec.names.{field} is forbidden"
            ))
        })
}

/// The name of the binding that the system makes for an export in a workspace.
pub fn default_name(here: &ClusterId, path: &str, export: &str) -> String {
    let hash = encode::base62_sha224(&format!("{here}|{path}|{export}"));
    let prefix: String = export.chars().take(MAX_NAME_PREFIX).collect();
    format!("{prefix}-{}", hash[..5].to_lowercase())
}

/// The binding that the system makes for an export, which accepts whatever the export asks for.
pub fn default_binding(here: &ClusterId, path: &str, export: &ApiExport) -> Value {
    let answers: Vec<Value> = export
        .claims
        .iter()
        .map(|claim| {
            let mut answer = json!({"resource": claim.resource, "verbs": claim.verbs});
            if !claim.group.is_empty() {
                answer["group"] = json!(claim.group);
            }
            if !claim.identity_hash.is_empty() {
                answer["identityHash"] = json!(claim.identity_hash);
            }
            answer["selector"] = claim
                .default_selector
                .clone()
                .unwrap_or_else(|| json!({"matchAll": true}));
            answer["state"] = json!("Accepted");
            answer
        })
        .collect();
    let mut spec = json!({"reference": {"export": {"path": path, "name": export.meta.name}}});
    if !answers.is_empty() {
        spec["permissionClaims"] = Value::Array(answers);
    }
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": default_name(here, path, &export.meta.name)},
        "spec": spec,
    })
}

/// What is wrong with a binding that somebody wrote, beyond its schema.
pub fn objections(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let binding = ApiBinding::read(object);
    let mut errors = Vec::new();
    let export = Path::new("spec").child("reference").child("export");
    match &binding.reference {
        None => errors.push(FieldError::required(&export, "")),
        Some(reference) if reference.name.is_empty() => {
            errors.push(FieldError::required(&export.child("name"), ""));
        }
        Some(_) => {}
    }
    for (at, answer) in binding.answers.iter().enumerate() {
        let path = Path::new("spec")
            .child("permissionClaims")
            .index(at)
            .child("selector");
        let filled = |field: &str| match answer.selector.get(field) {
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        };
        let all = answer.selector.get("matchAll") == Some(&Value::Bool(true));
        for field in ["matchLabels", "matchExpressions"] {
            if all && filled(field) {
                errors.push(FieldError::invalid(
                    &path.child(field),
                    answer.selector.clone(),
                    format!("{field} cannot be used with matchAll"),
                ));
            }
        }
        if !all && !filled("matchLabels") && !filled("matchExpressions") {
            let detail = "either one of matchAll, matchLabels, or matchExpressions must be set";
            errors.push(FieldError::required(&path, detail));
        }
    }
    let before = old.map(ApiBinding::read);
    if let Some(before) = before.filter(|it| !it.phase.is_empty() && binding.phase.is_empty()) {
        errors.push(FieldError::forbidden(
            &Path::new("status").child("phase"),
            format!("cannot transition from {:?} to \"\"", before.phase),
        ));
    }
    errors
}

/// A claim as it stands in a status.
fn claim_value(claim: &Claim) -> Value {
    let mut value = json!({});
    if !claim.group.is_empty() {
        value["group"] = json!(claim.group);
    }
    value["resource"] = json!(claim.resource);
    value["verbs"] = json!(claim.verbs);
    if !claim.identity_hash.is_empty() {
        value["identityHash"] = json!(claim.identity_hash);
    }
    if let Some(selector) = &claim.default_selector {
        value["defaultSelector"] = selector.clone();
    }
    value
}

#[cfg(test)]
mod tests;
