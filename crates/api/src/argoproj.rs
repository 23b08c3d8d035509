//! `argoproj.io`: Argo CD's kinds and the words that its users write into metadata.

use crate::Kind;

/// The group.
pub const GROUP: &str = "argoproj.io";

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
