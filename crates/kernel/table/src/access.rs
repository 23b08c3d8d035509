//! Bindings of roles, and certificates.

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, NAME, text as column, wide};
use crate::duration::human_duration;
use crate::field::{NONE, age, at, filled_or, items, name, text};
use crate::selector::format_labels;

pub(crate) fn rbac(resource: &str) -> Option<&'static Printer> {
    matches!(resource, "rolebindings" | "clusterrolebindings").then_some(&BINDING)
}

pub(crate) fn certificates(resource: &str) -> Option<&'static Printer> {
    Some(match resource {
        "certificatesigningrequests" => &CERTIFICATE_SIGNING_REQUEST,
        "clustertrustbundles" => &CLUSTER_TRUST_BUNDLE,
        "podcertificaterequests" => &POD_CERTIFICATE_REQUEST,
        _ => return None,
    })
}

static BINDING: Printer = Printer {
    columns: &[
        NAME,
        column("Role", "The role that is granted"),
        AGE,
        wide("Users", "The users to whom it is granted"),
        wide("Groups", "The groups to whom it is granted"),
        wide("ServiceAccounts", "The service accounts to whom it is granted"),
    ],
    cells: |object, now| {
        let subjects = |kind: &str| -> Value {
            let names: Vec<String> = items(object, "subjects")
                .filter(|subject| text(subject, "kind") == kind)
                .map(|subject| match text(subject, "namespace") {
                    namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                        format!("{namespace}/{}", text(subject, "name"))
                    }
                    _ => text(subject, "name").to_owned(),
                })
                .collect();
            names.join(", ").into()
        };
        let role = format!(
            "{}/{}",
            text(object, "roleRef.kind"),
            text(object, "roleRef.name")
        );
        vec![
            name(object),
            role.into(),
            age(object, now),
            subjects("User"),
            subjects("Group"),
            subjects("ServiceAccount"),
        ]
    },
};

static CERTIFICATE_SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        column("SignerName", "The signer that shall sign"),
        column("Requestor", "Who asks"),
        column("RequestedDuration", "How long the certificate shall be valid"),
        column("Condition", "What has become of the request"),
    ],
    cells: |object, now| {
        let duration = at(object, "spec.expirationSeconds").and_then(Value::as_i64);
        vec![
            name(object),
            age(object, now),
            filled_or(object, "spec.signerName", NONE).into(),
            text(object, "spec.username").into(),
            duration.map_or(NONE.to_owned(), human_duration).into(),
            request_condition(object).into(),
        ]
    },
};

fn request_condition(request: &Value) -> String {
    let has =
        |kind: &str| items(request, "status.conditions").any(|condition| text(condition, "type") == kind);
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(request, "status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

static CLUSTER_TRUST_BUNDLE: Printer = Printer {
    columns: &[NAME, column("SignerName", "The signer whose roots these are")],
    cells: |object, _| vec![name(object), filled_or(object, "spec.signerName", NONE).into()],
};

static POD_CERTIFICATE_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        column("PodName", "The pod that the certificate is for"),
        column("ServiceAccountName", "The pod's service account"),
        column("NodeName", "The pod's node"),
        column("SignerName", "The signer that shall sign"),
        column("State", "What has become of the request"),
        column("UnverifiedUserAnnotations", "What the user adds for the signer"),
    ],
    cells: |object, _| {
        let state = items(object, "status.conditions")
            .map(|condition| text(condition, "type"))
            .rfind(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
        vec![
            name(object),
            text(object, "spec.podName").into(),
            text(object, "spec.serviceAccountName").into(),
            text(object, "spec.nodeName").into(),
            text(object, "spec.signerName").into(),
            state.unwrap_or("Pending").into(),
            format_labels(at(object, "spec.unverifiedUserAnnotations")).into(),
        ]
    },
};
