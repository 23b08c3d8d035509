//! What objects of a kind bring about: the kinds of objects that name them as owners.
//!
//! Of the kinds whose controllers are known it is known, too, so that nobody has to look everywhere. Of any other it has to be
//! found out.

/// Group and kind.
pub type GroupKindName = (&'static str, &'static str);

/// The kinds that something may own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owns {
    /// These, and no others.
    Only(&'static [GroupKindName]),
    /// Nobody knows.
    Anything,
}

const POD: GroupKindName = ("", "Pod");
const REVISION: GroupKindName = ("apps", "ControllerRevision");
const SLICE: GroupKindName = ("discovery.k8s.io", "EndpointSlice");
const CLAIM: GroupKindName = ("", "PersistentVolumeClaim");

/// Groups whose kinds own nothing, unless they are named.
const CHILDLESS: [&str; 13] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "gateway.networking.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
];

/// Kinds that are nobody's children, or of which there are too many to look through.
const NEVER_OWNED: [GroupKindName; 4] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("fairway.dev", "Tombstone"),
];

/// What objects of a kind may own.
pub fn owns(group: &str, kind: &str) -> Owns {
    Owns::Only(match (group, kind) {
        ("apps", "Deployment") => &[("apps", "ReplicaSet")],
        ("apps", "ReplicaSet") | ("", "ReplicationController") | ("batch", "Job") => &[POD],
        ("apps", "StatefulSet") => &[POD, REVISION, CLAIM],
        ("apps", "DaemonSet") => &[POD, REVISION],
        ("batch", "CronJob") => &[("batch", "Job")],
        ("", "Service") => &[SLICE],
        ("argoproj.io", "ApplicationSet") => &[("argoproj.io", "Application")],
        ("argoproj.io", "Application" | "AppProject") => &[],
        ("argoproj.io", "Rollout") => &[("apps", "ReplicaSet"), ("argoproj.io", "AnalysisRun")],
        ("kubevirt.io", "VirtualMachine") => &[
            ("kubevirt.io", "VirtualMachineInstance"),
            ("cdi.kubevirt.io", "DataVolume"),
            REVISION,
        ],
        ("kubevirt.io", "VirtualMachineInstance") => &[POD],
        ("cdi.kubevirt.io", "DataVolume") => &[CLAIM],
        ("cert-manager.io", "Certificate") => &[("cert-manager.io", "CertificateRequest")],
        ("cert-manager.io", "CertificateRequest") => &[("acme.cert-manager.io", "Order")],
        ("acme.cert-manager.io", "Order") => &[("acme.cert-manager.io", "Challenge")],
        (group, _) if CHILDLESS.contains(&group) => &[],
        _ => return Owns::Anything,
    })
}

/// Whether objects of a kind may be somebody's children.
pub fn may_be_owned(group: &str, kind: &str) -> bool {
    !NEVER_OWNED.contains(&(group, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kinds_own() {
        for (group, kind, expected) in [
            ("apps", "Deployment", Owns::Only(&[("apps", "ReplicaSet")])),
            ("apps", "ReplicaSet", Owns::Only(&[("", "Pod")])),
            ("", "ConfigMap", Owns::Only(&[])),
            ("rbac.authorization.k8s.io", "Role", Owns::Only(&[])),
            ("argoproj.io", "Application", Owns::Only(&[])),
            ("example.com", "Database", Owns::Anything),
            ("argoproj.io", "Workflow", Owns::Anything),
        ] {
            assert_eq!(owns(group, kind), expected, "{group}/{kind}");
        }
        assert!(may_be_owned("", "Pod") && !may_be_owned("", "Event"));
    }
}
