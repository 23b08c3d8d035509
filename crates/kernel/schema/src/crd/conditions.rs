//! Conditions of definitions: what they are, when they hold, and how they are written.

use serde_json::{Map, Value, json};

use super::{APPROVAL_ANNOTATION, flag, list, present, text};
use crate::field::{FieldError, Path};
use crate::structural::Structural;

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub condition_type: String,
    /// Whether it holds.
    pub status: Status,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

impl Condition {
    /// A condition.
    pub fn new(
        condition_type: impl Into<String>,
        status: Status,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition_type: condition_type.into(),
            status,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The condition of a definition.
    pub fn find(crd: &Value, condition_type: &str) -> Option<Self> {
        let found = list(crd.get("status")?, "conditions")
            .iter()
            .find(|c| text(c, "type") == condition_type)?;
        let status = match text(found, "status") {
            "True" => Status::True,
            "False" => Status::False,
            _ => Status::Unknown,
        };
        Some(Self::new(
            condition_type,
            status,
            text(found, "reason"),
            text(found, "message"),
        ))
    }

    /// Whether the condition of a definition holds.
    pub fn holds(crd: &Value, condition_type: &str) -> bool {
        Self::find(crd, condition_type).is_some_and(|c| c.status == Status::True)
    }

    /// Writes the condition into the status. `now` is an RFC 3339 time; it is used only if the status changes. Returns
    /// whether anything changed.
    pub fn set(&self, crd: &mut Value, now: &str) -> bool {
        let Some(crd) = crd.as_object_mut() else {
            return false;
        };
        let status = crd.entry("status").or_insert_with(|| Value::Object(Map::new()));
        let Some(status) = status.as_object_mut() else {
            return false;
        };
        let conditions = status
            .entry("conditions")
            .or_insert_with(|| Value::Array(Vec::new()));
        if !conditions.is_array() {
            *conditions = Value::Array(Vec::new());
        }
        let Some(conditions) = conditions.as_array_mut() else {
            return false;
        };
        let written = json!({
            "type": self.condition_type, "status": self.status.name(), "lastTransitionTime": now,
            "reason": self.reason, "message": self.message,
        });
        let Some(existing) = conditions
            .iter_mut()
            .find(|c| text(c, "type") == self.condition_type)
        else {
            conditions.push(written);
            return true;
        };
        let mut updated = written;
        if text(existing, "status") == self.status.name()
            && let Some(time) = present(existing, "lastTransitionTime")
        {
            updated["lastTransitionTime"] = time.clone();
        }
        if *existing == updated {
            return false;
        }
        *existing = updated;
        true
    }

    /// Takes a condition out of the status. Returns whether it was there.
    pub fn remove(crd: &mut Value, condition_type: &str) -> bool {
        let conditions = crd
            .pointer_mut("/status/conditions")
            .and_then(Value::as_array_mut);
        conditions.is_some_and(|conditions| {
            let before = conditions.len();
            conditions.retain(|c| text(c, "type") != condition_type);
            conditions.len() != before
        })
    }
}

/// `Established`, for a definition whose names were accepted and whose API is now served. `None`: nothing to do.
pub fn established(crd: &Value) -> Option<Condition> {
    if !Condition::holds(crd, "NamesAccepted") || Condition::holds(crd, "Established") {
        return None;
    }
    let message = "the initial names have been accepted";
    Some(Condition::new(
        "Established",
        Status::True,
        "InitialNamesAccepted",
        message,
    ))
}

/// `NonStructuralSchema`; `None`: all schemas are structural and the condition is to be removed.
pub fn non_structural_schema(crd: &Value) -> Option<Condition> {
    let spec = crd.get("spec")?;
    let mut errors = Vec::new();
    if flag(spec, "preserveUnknownFields") {
        errors.push(FieldError::invalid(
            &Path::new("spec.preserveUnknownFields"),
            true,
            "must be false",
        ));
    }
    for (i, version) in list(spec, "versions").iter().enumerate() {
        if let Some(schema) = version.get("schema").and_then(|s| present(s, "openAPIV3Schema")) {
            let path = Path::new("spec.versions")
                .index(i)
                .child("schema")
                .child("openAPIV3Schema");
            errors.append(&mut Structural::violations(schema, &path));
        }
    }
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let message = match &*texts {
        [] => return None,
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Some(Condition::new(
        "NonStructuralSchema",
        Status::True,
        "Violations",
        message,
    ))
}

/// Where the approval of a group of the Kubernetes community stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// Whether the group belongs to the Kubernetes community.
pub(super) fn is_protected_group(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|g| {
        group
            .strip_suffix(g)
            .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    })
}

pub(super) fn approval(crd: &Value) -> (Approval, String) {
    let annotation = crd
        .pointer("/metadata/annotations")
        .map_or("", |annotations| text(annotations, APPROVAL_ANNOTATION));
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let has_host = annotation
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
    if annotation.is_empty() {
        let reason = format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}, {see}");
        (Approval::Missing, reason)
    } else if annotation.starts_with("unapproved") {
        (Approval::Bypassed, format!("not approved: {annotation:?}"))
    } else if has_host && crate::structural::is_request_uri(annotation) {
        (Approval::Approved, format!("approved in {annotation}"))
    } else {
        let reason = format!(
            "protected groups must have approval annotation {APPROVAL_ANNOTATION:?} with either a URL or a reason \
             starting with \"unapproved\", {see}"
        );
        (Approval::Invalid, reason)
    }
}

/// `KubernetesAPIApprovalPolicyConformant`; `None` for groups that need no approval.
pub fn api_approval(crd: &Value) -> Option<Condition> {
    if !is_protected_group(text(crd.get("spec")?, "group")) {
        return None;
    }
    let (state, message) = approval(crd);
    let (status, reason) = match state {
        Approval::Invalid => (Status::False, "InvalidAnnotation"),
        Approval::Missing => (Status::False, "MissingAnnotation"),
        Approval::Approved => (Status::True, "ApprovedAnnotation"),
        Approval::Bypassed => (Status::False, "UnapprovedAnnotation"),
    };
    Some(Condition::new(
        "KubernetesAPIApprovalPolicyConformant",
        status,
        reason,
        message,
    ))
}

/// How far the removal of the objects of a definition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It was asked for.
    InProgress,
    /// All objects are gone.
    Completed,
    /// There never were objects.
    NeverEstablished,
    /// It failed and will be tried again.
    Failed(String),
}

/// `Terminating`.
pub fn terminating(removal: &Removal) -> Condition {
    let (status, reason, message) = match removal {
        Removal::InProgress => (
            Status::True,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        ),
        Removal::Completed => (
            Status::False,
            "InstanceDeletionCompleted",
            "removed all instances",
        ),
        Removal::NeverEstablished => (
            Status::False,
            "NeverEstablished",
            "resource was never established",
        ),
        Removal::Failed(message) => (Status::True, "InstanceDeletionFailed", message.as_str()),
    };
    Condition::new("Terminating", status, reason, message)
}

/// `ConversionSupported`, Fairway's own: false for a definition whose webhook is not called. `None`: nothing to say.
pub fn conversion_supported(crd: &Value) -> Option<Condition> {
    let strategy = crd.pointer("/spec/conversion/strategy").and_then(Value::as_str)?;
    (strategy == "Webhook").then(|| {
        Condition::new(
            "ConversionSupported",
            Status::False,
            "WebhookNotSupported",
            super::validation::WEBHOOK_WARNING,
        )
    })
}
