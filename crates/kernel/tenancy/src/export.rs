//! APIExports: what a provider offers, and under which identity objects are stored.
//!
//! The identity is a secret of the provider; its hash separates the objects of this export from those of any other that
//! happens to have the same kinds. Who holds the key can move the export, and nobody else can pretend to be it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fairway_kernel_schema::field::{FieldError, Path};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::claims::{Claim, is_built_in};
use crate::cluster::{ClusterId, WorkspacePath};
use crate::conditions::{Conditions, Severity};
use crate::encode;
use crate::meta::{Meta, part};
use crate::names::annotation;
use crate::schema::ApiResourceSchema;

/// Where identity secrets lie if nobody says otherwise.
pub const SECRET_NAMESPACE: &str = "kcp-system";

/// One kind that an export offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ExportedResource {
    /// The plural name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The APIResourceSchema.
    pub schema: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct SecretReference {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    secret_ref: Option<SecretReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    local: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resources: Vec<ExportedResource>,
    identity: Option<Identity>,
    maximal_permission_policy: Option<Policy>,
    permission_claims: Vec<Claim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    identity_hash: String,
}

/// An APIExport (`v1alpha2`).
#[derive(Clone, Debug)]
pub struct ApiExport {
    /// Its metadata.
    pub meta: Meta,
    /// The kinds that it offers.
    pub resources: Vec<ExportedResource>,
    /// What it asks consumers for.
    pub claims: Vec<Claim>,
    /// The hash of its identity; empty until it is known.
    pub identity_hash: String,
    /// Whether consumers are bounded by RBAC in the export's workspace.
    pub has_policy: bool,
    secret: Option<SecretReference>,
    conditions: Conditions,
}

impl ApiExport {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec: Spec = part(object, "spec");
        let status: Status = part(object, "status");
        Self {
            meta: Meta::read(object),
            resources: spec.resources,
            claims: spec.permission_claims,
            identity_hash: status.identity_hash,
            has_policy: spec
                .maximal_permission_policy
                .is_some_and(|it| it.local.is_some()),
            secret: spec.identity.and_then(|it| it.secret_ref),
            conditions: Conditions::read(object),
        }
    }

    /// Namespace and name of the Secret with its identity.
    pub fn secret(&self) -> (&str, &str) {
        match &self.secret {
            Some(secret) => (&secret.namespace, &secret.name),
            None => (SECRET_NAMESPACE, &self.meta.name),
        }
    }
}

/// The hash of an identity key.
pub fn identity_hash(key: &[u8]) -> String {
    encode::hex(&Sha256::digest(key))
}

/// What is to be done about an APIExport, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// A Secret to create, in the export's workspace; its namespace, too, if that is missing.
    pub create_secret: Option<Value>,
    /// `spec.identity.secretRef` to write.
    pub secret_ref: Option<Value>,
    /// The status, if it is to change.
    pub status: Option<Value>,
    /// An APIExportEndpointSlice to create.
    pub create_slice: Option<Value>,
}

/// What was found.
pub struct Observed<'a> {
    /// The export.
    pub export: &'a ApiExport,
    /// The Secret that [`ApiExport::secret`] names, if it exists.
    pub secret: Option<&'a Value>,
    /// Whether an APIExportEndpointSlice of the export's name exists.
    pub has_slice: bool,
    /// Randomness for a new identity.
    pub fresh: &'a [u8; 32],
    /// The time.
    pub now: &'a str,
}

/// Decides.
pub fn decide(observed: &Observed<'_>) -> Plan {
    let export = observed.export;
    let mut plan = Plan::default();
    let (namespace, name) = export.secret();
    let fresh_key = URL_SAFE_NO_PAD.encode(observed.fresh);
    let key = match (&export.secret, observed.secret) {
        // Only the default Secret is ours to make. One that somebody named is his, and a lost one is not replaced:
        // another key would be another identity.
        (None, None) if export.identity_hash.is_empty() => {
            plan.create_secret = Some(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": namespace, "name": name},
                "type": "Opaque",
                "data": {"key": STANDARD.encode(&fresh_key)},
            }));
            Ok(fresh_key.into_bytes())
        }
        (_, None) => Err(format!("secrets {namespace:?}/{name:?} not found")),
        (_, Some(secret)) => key_of(secret).ok_or_else(|| "secret is missing data.key".to_owned()),
    };
    if export.secret.is_none() && key.is_ok() {
        plan.secret_ref = Some(json!({"namespace": namespace, "name": name}));
    }
    let mut conditions = export.conditions.clone();
    let mut hash = export.identity_hash.clone();
    let verified = key.and_then(|key| {
        let found = identity_hash(&key);
        if hash.is_empty() {
            hash.clone_from(&found);
        }
        if hash == found {
            Ok(())
        } else {
            Err(format!(
                "hash mismatch: identity secret hash {found:?} must match status.identityHash {hash:?}"
            ))
        }
    });
    match verified {
        Ok(()) => conditions.mark_true("IdentityValid", observed.now),
        Err(message) => conditions.mark_false(
            "IdentityValid",
            "IdentityVerificationFailed",
            Severity::Error,
            &message,
            observed.now,
        ),
    }
    if hash != export.identity_hash || conditions != export.conditions {
        let mut status = json!({});
        if !hash.is_empty() {
            status["identityHash"] = json!(hash);
        }
        status["conditions"] = conditions.to_value();
        plan.status = Some(status);
    }
    let wants_slice = export.meta.annotation(annotation::SKIP_ENDPOINT_SLICE).is_none();
    if wants_slice && !observed.has_slice && !export.meta.is_deleting() {
        plan.create_slice = Some(slice_for(export));
    }
    plan
}

fn key_of(secret: &Value) -> Option<Vec<u8>> {
    let encoded = secret.pointer("/data/key")?.as_str()?;
    STANDARD.decode(encoded).ok().filter(|key| !key.is_empty())
}

fn slice_for(export: &ApiExport) -> Value {
    let mut reference = json!({"name": export.meta.name});
    if let Some(path) = export.meta.annotation(annotation::PATH) {
        reference["path"] = json!(path);
    }
    json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExportEndpointSlice",
        "metadata": {
            "name": export.meta.name,
            "ownerReferences": [{
                "apiVersion": "apis.kcp.io/v1alpha2",
                "kind": "APIExport",
                "name": export.meta.name,
                "uid": export.meta.uid,
            }],
        },
        "spec": {"export": reference},
    })
}

/// The address of an export's virtual workspace, without `/clusters/…`.
pub fn endpoint(base_url: &str, cluster: &ClusterId, export: &str) -> String {
    format!(
        "{}/services/apiexport/{cluster}/{export}",
        base_url.trim_end_matches('/')
    )
}

/// The status of an APIExportEndpointSlice, if it is to change. `export` is what it refers to, if that exists, with its
/// workspace; consumers are bindings to it anywhere.
pub fn slice_status(
    slice: &Value,
    export: Option<(&ApiExport, &ClusterId)>,
    has_consumers: bool,
    base_url: &str,
    now: &str,
) -> Option<Value> {
    let old = slice.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions = Conditions::read(slice);
    let partition = slice.pointer("/spec/partition").and_then(Value::as_str);
    let mut status = old.clone();
    status["endpoints"] = json!([]);
    match export {
        None => {
            let reference = slice.pointer("/spec/export").unwrap_or(&Value::Null);
            let field = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
            let meta = Meta::read(slice);
            let path = match field("path") {
                "" => meta.annotation(annotation::CLUSTER).unwrap_or_default(),
                path => path,
            };
            let message = format!("Error getting APIExport {path}|{}", field("name"));
            conditions.mark_false(
                "APIExportValid",
                "APIExportNotFound",
                Severity::Error,
                &message,
                now,
            );
        }
        Some((export, cluster)) => {
            conditions.mark_true("APIExportValid", now);
            if let Some(partition) = partition.filter(|it| !it.is_empty()) {
                // There is one place where workspaces are, so there are no partitions of places.
                let message = format!(
                    "Partition {partition:?} not found: this server has no partitions; leave spec.partition empty"
                );
                conditions.mark_false(
                    "PartitionValid",
                    "PartitionInvalidReference",
                    Severity::Error,
                    &message,
                    now,
                );
            } else {
                conditions.mark_true("PartitionValid", now);
                if has_consumers {
                    status["endpoints"] = json!([{"url": endpoint(base_url, cluster, &export.meta.name)}]);
                }
            }
        }
    }
    status["conditions"] = conditions.to_value();
    if status["endpoints"] == json!([])
        && let Some(status) = status.as_object_mut()
    {
        status.shift_remove("endpoints");
    }
    (status != old).then_some(status)
}

/// What is wrong with an APIExport that somebody wrote, beyond its schema.
pub fn objections(object: &Value) -> Vec<FieldError> {
    let export = ApiExport::read(object);
    let spec = Path::new("spec");
    let mut errors = Vec::new();
    for (at, claim) in export.claims.iter().enumerate() {
        if claim.identity_hash.is_empty() && !is_built_in(&claim.group, &claim.resource) {
            errors.push(FieldError::invalid(
                &spec.child("permissionClaims").index(at).child("identityHash"),
                "",
                "identityHash is required for API types that are not built-in",
            ));
        }
    }
    for (at, resource) in export.resources.iter().enumerate() {
        let suffix = ApiResourceSchema::suffix(&resource.group, &resource.name);
        if !resource.schema.ends_with(&suffix) {
            errors.push(FieldError::invalid(
                &spec.child("resources").index(at).child("schema"),
                resource.schema.clone(),
                format!("must end in {suffix}"),
            ));
        }
    }
    errors
}

/// One question for the authorizer: may the user `bind` to this export? It is asked in the export's own workspace, of
/// `apiexports/<name>` of `apis.kcp.io`. That the export does not exist is answered with the same refusal, so that nobody
/// learns what others have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindQuestion {
    /// The path of the workspace to ask in; the reference's own, or that of the object that refers.
    pub path: WorkspacePath,
    /// The export.
    pub name: String,
    /// What to say if the answer is no.
    pub refusal: String,
}

impl BindQuestion {
    /// The question that a reference raises. `here` is the workspace of the object with the reference, `action` what is
    /// being done, such as `create APIBinding`.
    pub fn new(reference_path: &str, name: &str, here: &WorkspacePath, action: &str) -> Self {
        let shown = match reference_path {
            "" => name.to_owned(),
            path => format!("{path}:{name}"),
        };
        Self {
            path: WorkspacePath::parse(reference_path).unwrap_or_else(|_| here.clone()),
            name: name.to_owned(),
            refusal: format!("unable to {action}: no permission to bind to export {shown}"),
        }
    }
}

#[cfg(test)]
mod tests;
