//! Who may say yes to a request for a certificate, who may sign it, and what nobody may ask for.
//!
//! Rights on the subresources are not enough: a signer is a resource of its own, on which one must have the verb `approve`
//! or `sign`. That is how an approver of one signer's requests is kept from approving another's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_authz::{Attributes, ResourceAttributes};
use fairway_kernel_x509::Request;
use serde_json::Value;

use super::Operation;
use crate::rest::call::{Call, meta};
use crate::status::ApiError;

/// Signs for users of this API; its certificates must not make administrators who are outside RBAC.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const ALL_POWERFUL: &str = "system:masters";

/// Refuses what upstream's CertificateApproval, CertificateSigning and CertificateSubjectRestriction refuse.
pub fn confirm(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if !call.def.is("certificates.k8s.io", "certificatesigningrequests") {
        return Ok(());
    }
    match (operation, call.subresource(), old) {
        (Operation::Create, None, _) => confirm_subject(call, object),
        (Operation::Update, Some("approval"), Some(old)) => confirm_signer(call, old, "approve"),
        (Operation::Update, Some("status"), Some(old)) if judged(old) != judged(object) => {
            confirm_signer(call, old, "sign")
        }
        _ => Ok(()),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// What only a signer may change.
fn judged(object: &Value) -> (&str, &[Value]) {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    (
        text(object, "/status/certificate"),
        conditions.map_or(&[], Vec::as_slice),
    )
}

/// The signer of the stored request counts, not one that the client has put into its place.
fn confirm_signer(call: &Call<'_>, old: &Value, verb: &str) -> Result<(), ApiError> {
    let signer = text(old, "/spec/signerName");
    let may = |name: &str| {
        let attributes = Attributes {
            user: call.user,
            verb,
            path: "",
            resource: Some(ResourceAttributes {
                group: "certificates.k8s.io",
                version: "*",
                resource: "signers",
                name,
                ..ResourceAttributes::default()
            }),
        };
        call.kernel.authorize(call.cluster, &attributes).is_ok()
    };
    let domain = signer.split('/').next().unwrap_or("");
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        call.about(meta(old, "name")),
        format!("user not permitted to {verb} requests with signerName {signer:?}"),
    ))
}

fn confirm_subject(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    if text(object, "/spec/signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let refused = |why: String| Err(ApiError::forbidden(call.about(meta(object, "name")), why));
    let pem = STANDARD.decode(text(object, "/spec/request")).unwrap_or_default();
    match Request::from_pem(&pem) {
        Err(error) => refused(format!("failed to parse CSR: {error}")),
        Ok(request) if request.subject.organisations.iter().any(|o| o == ALL_POWERFUL) => refused(format!(
            "use of {CLIENT_SIGNER} signer with {ALL_POWERFUL} group is not allowed"
        )),
        Ok(_) => Ok(()),
    }
}
