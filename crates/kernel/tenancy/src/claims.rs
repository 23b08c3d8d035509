//! Permission claims: which of a consumer's objects a provider may see and touch.
//!
//! An export asks (group, resource, identity, verbs); a binding accepts or rejects, and narrows by a selector. What both
//! say counts. Objects under a claim carry a label, by which kcp's virtual workspaces find them and which nobody can set
//! or keep by hand.

use std::collections::BTreeMap;

use fairway_kernel_kinds::selector;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::binding::ApiBinding;
use crate::cluster::ClusterId;
use crate::encode;
use crate::export::ApiExport;
use crate::names::{APIS, label};

/// Kinds that can be claimed without an identity, because every workspace has the same.
const BUILT_IN: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "events"),
    ("", "namespaces"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("coordination.k8s.io", "leases"),
    ("core.kcp.io", "logicalclusters"),
    ("events.k8s.io", "events"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    // kcp exports these from its root workspace, with an identity; here every workspace has them.
    ("tenancy.kcp.io", "workspaces"),
    ("tenancy.kcp.io", "workspacetypes"),
];

/// Whether a kind can be claimed without an identity.
pub fn is_built_in(group: &str, resource: &str) -> bool {
    BUILT_IN.contains(&(group, resource)) || group == APIS
}

/// What an export asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Claim {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// Verbs; `*` is all.
    pub verbs: Vec<String>,
    /// The identity of the kind's export; empty for built-in kinds.
    pub identity_hash: String,
    /// What a binding that is made by the system accepts; absent: everything.
    pub default_selector: Option<Value>,
}

impl Claim {
    /// Group, resource and identity: what makes two claims the same.
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.group, &self.resource, &self.identity_hash)
    }

    fn covers(&self, group: &str, resource: &str) -> bool {
        let (group, resource) = one_event(group, resource);
        one_event(&self.group, &self.resource) == (group, resource)
    }

    fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb || it == "*")
    }
}

/// Events are one kind in two groups.
fn one_event<'a>(group: &'a str, resource: &'a str) -> (&'a str, &'a str) {
    match (group, resource) {
        ("events.k8s.io", "events") => ("", "events"),
        other => other,
    }
}

/// What a binding answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The claim that is answered, with the verbs that are granted.
    #[serde(flatten)]
    pub claim: Claim,
    /// Which objects.
    pub selector: Value,
    /// `Accepted` or `Rejected`.
    pub state: String,
}

impl Answer {
    /// Whether the consumer agreed.
    pub fn is_accepted(&self) -> bool {
        self.state == "Accepted"
    }

    /// Whether an object with these labels is meant. A selector that says nothing means nothing.
    pub fn selects(&self, labels: &Value) -> bool {
        selects(&self.selector, labels)
    }
}

fn selects(claim_selector: &Value, labels: &Value) -> bool {
    if claim_selector.get("matchAll") == Some(&Value::Bool(true)) {
        return true;
    }
    let says_something =
        ["matchLabels", "matchExpressions"]
            .iter()
            .any(|field| match claim_selector.get(*field) {
                Some(Value::Object(map)) => !map.is_empty(),
                Some(Value::Array(list)) => !list.is_empty(),
                _ => false,
            });
    says_something && selector::is_usable(claim_selector) && selector::matches(claim_selector, labels)
}

/// What gives a provider access to a kind in one consumer's workspace.
#[derive(Clone, Debug, PartialEq)]
pub enum Access<'a> {
    /// The export offers the kind: all objects.
    Bound,
    /// A claim covers it: the objects that the answer selects.
    Claimed(&'a Answer),
    /// The binding itself may be read.
    OwnBinding,
}

/// Whether a provider may use `verb` on a kind in the workspace of `binding`, which is the consumer's binding to `export`,
/// if there is one. The error is the reason for the refusal.
///
/// A verb must be asked for by the export and granted by the binding, each by name or by `*`.
pub fn access<'a>(
    export: &ApiExport,
    binding: Option<&'a ApiBinding>,
    group: &str,
    resource: &str,
    verb: &str,
) -> Result<Access<'a>, &'static str> {
    let Some(binding) = binding.filter(|it| it.is_bound_to(export)) else {
        return Err("could not find suitable APIBinding in target logical cluster");
    };
    if binding
        .bound
        .iter()
        .any(|it| it.group == group && it.resource == resource)
    {
        return Ok(Access::Bound);
    }
    let granted = binding.answers.iter().find(|answer| {
        answer.is_accepted()
            && answer.claim.covers(group, resource)
            && answer.claim.allows(verb)
            && export
                .claims
                .iter()
                .any(|claim| claim.key() == answer.claim.key() && claim.allows(verb))
    });
    if let Some(answer) = granted {
        return Ok(Access::Claimed(answer));
    }
    if group == APIS && resource == "apibindings" {
        return match verb {
            "get" | "list" | "watch" => Ok(Access::OwnBinding),
            _ => Err("write access to APIBinding is not allowed from virtual workspace"),
        };
    }
    Err("failed to find suitable reason to allow access in APIBinding")
}

/// Whether a provider sees an object with these labels, given what lets it into the kind.
pub fn is_visible(access: &Access<'_>, labels: &Value) -> bool {
    match access {
        Access::Bound => true,
        Access::Claimed(answer) => answer.selects(labels),
        // The caller shows the binding itself and nothing else.
        Access::OwnBinding => false,
    }
}

/// Makes an object that a provider writes fall under the claim that lets it write: labels that the selector names are
/// filled in, other values are refused, and in the end the object must be one that the provider could see.
pub fn admit_write(answer: &Answer, labels: &mut Map<String, Value>) -> Result<(), String> {
    if answer.selector.get("matchAll") != Some(&Value::Bool(true)) {
        let wanted = answer.selector.get("matchLabels").and_then(Value::as_object);
        for (key, value) in wanted.into_iter().flatten() {
            match labels.get(key) {
                None => {
                    labels.insert(key.clone(), value.clone());
                }
                Some(found) if found == value => {}
                Some(_) => {
                    let value = value.as_str().unwrap_or_default();
                    return Err(format!("protected label {key} must have value {value}"));
                }
            }
        }
    }
    if answer.selects(&Value::Object(labels.clone())) {
        Ok(())
    } else {
        Err("object does not match required labels".to_owned())
    }
}

/// The value of an APIBinding's label that names its export.
pub fn export_label_value(cluster: &ClusterId, export: &str) -> String {
    encode::base62_sha224(&format!("{cluster}:{export}"))
}

/// The label of objects under a claim: key and value.
pub fn claim_label(cluster: &ClusterId, export: &str, claim: &Claim) -> (String, String) {
    // The JSON that kcp hashes, field by field: verbs and selectors may change without the label changing.
    let mut identity = Map::new();
    if !claim.group.is_empty() {
        identity.insert("group".to_owned(), json!(claim.group));
    }
    identity.insert("resource".to_owned(), json!(claim.resource));
    identity.insert("verbs".to_owned(), Value::Null);
    if !claim.identity_hash.is_empty() {
        identity.insert("identityHash".to_owned(), json!(claim.identity_hash));
    }
    (
        format!("{}{}", label::CLAIMED_PREFIX, export_label_value(cluster, export)),
        encode::base62_sha224(&Value::Object(identity).to_string()),
    )
}

/// The label that an APIBinding carries for its own export when it accepted no claim on bindings.
pub fn own_binding_label(cluster: &ClusterId, export: &str) -> (String, String) {
    let fixed: Vec<u8> = (0..28).map(|at| at % 10).collect();
    (
        format!("{}{}", label::CLAIMED_PREFIX, export_label_value(cluster, export)),
        encode::base62(&fixed),
    )
}

/// The claim labels that an object must carry: one for every export that may see it. `bindings` are those of the object's
/// workspace, each with its export's workspace.
pub fn labels_for<'a>(
    bindings: impl IntoIterator<Item = &'a ApiBinding>,
    group: &str,
    resource: &str,
    labels: &Value,
) -> BTreeMap<String, String> {
    let mut expected = BTreeMap::new();
    for binding in bindings {
        let Some((cluster, export)) = binding.export() else {
            continue;
        };
        for answer in &binding.answers {
            if answer.is_accepted() && answer.claim.covers(group, resource) && answer.selects(labels) {
                let (key, value) = claim_label(cluster, export, &answer.claim);
                expected.insert(key, value);
            }
        }
    }
    expected
}

/// Puts the claim labels of an object right; true if something changed.
pub fn set_labels(labels: &mut Map<String, Value>, expected: &BTreeMap<String, String>) -> bool {
    let before = labels.clone();
    labels.retain(|key, _| !key.starts_with(label::CLAIMED_PREFIX) || expected.contains_key(key));
    for (key, value) in expected {
        labels.insert(key.clone(), json!(value));
    }
    *labels != before
}

/// The claims of its export that an APIBinding says nothing about, as `<resource>.<group>`: whoever keeps the workspace should
/// accept or reject them.
pub fn unanswered(binding: &Value) -> Vec<String> {
    let list = |pointer: &str| {
        binding
            .pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let same = |a: &Value, b: &Value| {
        ["group", "resource", "identityHash"].iter().all(|field| {
            let text = |it: &Value| it[*field].as_str().unwrap_or_default().to_owned();
            text(a) == text(b)
        })
    };
    let is_answered = |claim: &Value| {
        list("/spec/permissionClaims").any(|answer| {
            same(answer, claim) && matches!(answer["state"].as_str(), Some("Accepted" | "Rejected"))
        })
    };
    list("/status/exportPermissionClaims")
        .filter(|claim| !is_answered(claim))
        .map(|claim| {
            let text = |field: &str| claim[field].as_str().unwrap_or_default();
            match text("group") {
                "" => text("resource").to_owned(),
                group => format!("{}.{group}", text("resource")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
