//! What kind of refusal a message is. The API's answers reach people as text in other objects' statuses; who refused is in the words
//! that Kubernetes has for it.

/// Whether admission refused: the object is invalid, a webhook or a policy denied it, or a quota is used up. A user who lacks a
/// right, a namespace that is missing and a conflict are none.
pub(crate) fn is_admission(message: &str) -> bool {
    let is_missing_right = message.contains("is forbidden: User ") || message.contains("cannot impersonate");
    let words = [
        "denied the request",
        "denied request",
        " is invalid:",
        " is invalid.",
        "exceeded quota",
        "is forbidden:",
        "must specify limits",
        "unknown field",
        "strict decoding error",
        "cannot unmarshal",
        "failed to create typed patch object",
        "is immutable",
        "unable to parse quantity",
        "cannot be handled as a",
    ];
    !is_missing_right && !is_gone_place(message) && words.iter().any(|it| message.contains(it))
}

/// Whether the place is the matter: a namespace that is missing or being deleted.
fn is_gone_place(message: &str) -> bool {
    message.contains("because it is being terminated")
        || message.contains("namespaces \"") && message.contains("\" not found")
}

/// Whether a message speaks of DataVolumes, disks or images.
pub(crate) fn is_of_disks(message: &str) -> bool {
    [
        "DataVolume",
        "datavolume",
        "datasource",
        "DataSource",
        "PersistentVolumeClaim",
    ]
    .iter()
    .any(|it| message.contains(it))
}

/// Whether placing waits for a claim: the disk is the matter, not the nodes.
pub(crate) fn is_of_claims(message: &str) -> bool {
    let words = ["PVC ", "unbound", "persistentvolumeclaim", "DataVolume "];
    words.iter().any(|it| message.contains(it)) && !message.contains("node affinity")
}

/// Whether a quota or a policy of the namespace refused, whoever it was that asked.
pub(crate) fn is_limit(message: &str) -> bool {
    let words = [
        "exceeded quota",
        "must specify limits",
        "ValidatingAdmissionPolicy",
        "maximum ",
        "minimum ",
    ];
    is_admission(message) && words.iter().any(|it| message.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refused() {
        for (message, admission, limit) in [
            (
                "Service \"s\" is invalid: spec.ports[0].port: Invalid value: 99999999",
                true,
                false,
            ),
            (
                "admission webhook \"virtualmachine-validator.kubevirt.io\" denied the request: no",
                true,
                false,
            ),
            (
                "configmaps \"a\" is forbidden: exceeded quota: q, requested: count/configmaps=1",
                true,
                true,
            ),
            (
                "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no",
                true,
                true,
            ),
            (
                "pods \"a\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
                true,
                true,
            ),
            (
                "secrets is forbidden: User \"ann\" cannot create resource \"secrets\"",
                false,
                false,
            ),
            ("namespaces \"g\" not found", false, false),
            (
                "configmaps \"a\" is forbidden: unable to create new content in namespace x because it is being terminated",
                false,
                false,
            ),
            (
                "Apply failed with 1 conflict: conflict with \"other\": .data.a",
                false,
                false,
            ),
        ] {
            assert_eq!(
                (is_admission(message), is_limit(message)),
                (admission, limit),
                "{message}"
            );
        }
    }
}
