//! `argoproj.io`: Argo CD's kinds and the words that its users write into metadata.

use crate::Kind;

/// The group.
pub const GROUP: &str = "argoproj.io";
/// The group and the version of Argo CD's own kinds.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
/// Namespaces whose Applications need nobody's leave, and in which projects and settings are. What is not found in the first
/// is looked for in the next.
pub const CONTROL_PLANES: [&str; 2] = ["argocd", "openshift-gitops"];

/// What is deployed from where to where.
pub const APPLICATION: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "Application",
    plural: "applications",
};

/// Applications out of a template and parameters.
pub const APPLICATION_SET: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "ApplicationSet",
    plural: "applicationsets",
};

/// What the Applications of a project may do.
pub const APP_PROJECT: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "AppProject",
    plural: "appprojects",
};

/// The operator's kind: settings of an installation.
pub const ARGO_CD: Kind = Kind {
    group: GROUP,
    version: "v1beta1",
    kind: "ArgoCD",
    plural: "argocds",
};

/// The group of whoever comes with the token of a project's role.
pub const PROJECT_ROLES: &str = "argocd:project-roles";
/// What is known beside of such a user: the namespace of the control plane that the project is in.
pub const CONTROL_PLANE_EXTRA: &str = "fairway.dev/argocd-control-plane";

/// Deleting an Application with this finalizer deletes what it deployed, foreground.
pub const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// As [`RESOURCES_FINALIZER`], in the form that newer versions of Kubernetes ask for: with a path.
pub const FOREGROUND_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io/foreground";
/// As [`RESOURCES_FINALIZER`], background.
pub const BACKGROUND_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io/background";
/// Hooks run before the resources go.
pub const PRE_DELETE_FINALIZER: &str = "pre-delete-finalizer.argocd.argoproj.io";
/// Hooks run after the resources are gone.
pub const POST_DELETE_FINALIZER: &str = "post-delete-finalizer.argocd.argoproj.io";
/// Asks for a comparison: `normal` or `hard`.
pub const REFRESH_ANNOTATION: &str = "argocd.argoproj.io/refresh";
/// Asks for the Applications of an ApplicationSet to be generated again.
pub const APPLICATION_SET_REFRESH_ANNOTATION: &str = "argocd.argoproj.io/application-set-refresh";
/// What a Secret or ConfigMap is to Argo CD: `cluster`, `repository`, `repo-creds`.
pub const SECRET_TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";
/// The annotation of an Application that is somebody else's, or nobody's, for a while.
pub const SKIP_RECONCILE_ANNOTATION: &str = "argocd.argoproj.io/skip-reconcile";
/// Selects the Secrets of clusters.
pub const CLUSTER_SECRETS: &str = "argocd.argoproj.io/secret-type=cluster";
/// Selects the Secrets with credentials of one repository.
pub const REPOSITORY_SECRETS: &str = "argocd.argoproj.io/secret-type=repository";
/// Selects the Secrets with credentials of all repositories below an address.
pub const REPOSITORY_TEMPLATES: &str = "argocd.argoproj.io/secret-type=repo-creds";
