//! What the cluster can do, as charts see it.

use fairway_text_gotemplate::sprig::semver::Version;

/// A version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// `v1.32.0`
    pub version: String,
    /// `1`
    pub major: String,
    /// `32`
    pub minor: String,
}

impl KubeVersion {
    /// Reads what `--kube-version` takes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let version =
            Version::parse(text).map_err(|error| format!("invalid kube version '{text}': {error}"))?;
        Ok(Self {
            version: format!("v{version}"),
            major: version.major.to_string(),
            minor: version.minor.to_string(),
        })
    }
}

/// What `.Capabilities` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The version of Kubernetes.
    pub kube_version: KubeVersion,
    /// Group versions, and `group/version/Kind` where known.
    pub api_versions: Vec<String>,
}

/// The group versions that Helm 3.17 assumes without a cluster, in its order.
const KNOWN: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1alpha1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha1",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1alpha1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

impl Default for Capabilities {
    /// What Helm assumes without a cluster.
    fn default() -> Self {
        Self {
            kube_version: KubeVersion {
                version: "v1.32.0".to_owned(),
                major: "1".to_owned(),
                minor: "32".to_owned(),
            },
            api_versions: KNOWN.iter().map(|&version| version.to_owned()).collect(),
        }
    }
}

impl Capabilities {
    /// With what `--api-versions` adds.
    #[must_use]
    pub fn with_api_versions(mut self, versions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.api_versions.extend(versions.into_iter().map(Into::into));
        self
    }
}
