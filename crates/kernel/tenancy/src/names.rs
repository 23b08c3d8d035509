//! The fixed names of kcp: groups, annotations, labels, finalizers, groups of users.
//!
//! They are part of the interface: kcp's own tools and controllers look for them.

/// Group of Workspace and WorkspaceType.
pub const TENANCY: &str = "tenancy.kcp.io";
/// Group of LogicalCluster.
pub const CORE: &str = "core.kcp.io";
/// Group of APIExport, APIBinding and their kin.
pub const APIS: &str = "apis.kcp.io";
/// Group of PublishedResource.
pub const SYNCAGENT: &str = "syncagent.kcp.io";

/// The name of every LogicalCluster: there is one in each workspace.
pub const LOGICAL_CLUSTER: &str = "cluster";

/// Annotations.
pub mod annotation {
    /// The id of the workspace that an object lies in; shown on every object, stored on none.
    pub const CLUSTER: &str = "kcp.io/cluster";
    /// The path of the workspace that an object lies in, on kinds that others refer to by path.
    pub const PATH: &str = "kcp.io/path";
    /// On a LogicalCluster: its type, as `<path>:<name>`.
    pub const TYPE: &str = "internal.tenancy.kcp.io/type";
    /// On a Workspace: the id that it was or will be given.
    pub const WORKSPACE_CLUSTER: &str = "internal.tenancy.kcp.io/cluster";
    /// Who created a workspace, as a JSON UserInfo.
    pub const OWNER: &str = "experimental.tenancy.kcp.io/owner";
    /// Which groups a user must be in: `a,b;c` is (a and b) or c.
    pub const REQUIRED_GROUPS: &str = "authorization.kcp.io/required-groups";
    /// On a LogicalCluster, `true`: taken offline on purpose.
    pub const INACTIVE: &str = "core.kcp.io/inactive";
    /// The older name of [`INACTIVE`].
    pub const INACTIVE_LEGACY: &str = "internal.kcp.io/inactive";
    /// On a LogicalCluster: how many objects the workspace may hold.
    pub const MAX_OBJECTS: &str = "core.kcp.io/max-total-objects";
    /// On a LogicalCluster: who holds which resource (see [`crate::locks`]).
    pub const RESOURCE_BINDINGS: &str = "internal.apis.kcp.io/resource-bindings";
    /// On an APIExport: make no APIExportEndpointSlice for it.
    pub const SKIP_ENDPOINT_SLICE: &str = "apiexports.apis.kcp.io/skip-endpointslice";
    /// On the definition of a bound kind.
    pub const BOUND_CRD: &str = "apis.kcp.io/bound-crd";
    /// The workspace of a bound kind's schema.
    pub const SCHEMA_CLUSTER: &str = "apis.kcp.io/schema-cluster";
    /// The name of a bound kind's schema.
    pub const SCHEMA_NAME: &str = "apis.kcp.io/schema-name";
    /// The identity hash of a bound kind.
    pub const IDENTITY: &str = "apis.kcp.io/identity";
}

/// Labels.
pub mod label {
    /// The phase, on Workspaces and LogicalClusters.
    pub const PHASE: &str = "tenancy.kcp.io/phase";
    /// Before the hash of an initializer that is still there.
    pub const INITIALIZER_PREFIX: &str = "initializer.internal.kcp.io/";
    /// Before the hash of a terminator that is still there.
    pub const TERMINATOR_PREFIX: &str = "terminator.internal.kcp.io/";
    /// On an APIBinding: the hash of its export.
    pub const EXPORT: &str = "internal.apis.kcp.io/export";
    /// Before the hash of the export whose claim covers an object.
    pub const CLAIMED_PREFIX: &str = "claimed.internal.apis.kcp.io/";
}

/// Finalizers.
pub mod finalizer {
    /// On a Workspace, until its LogicalCluster is gone.
    pub const LOGICAL_CLUSTER: &str = "core.kcp.io/logicalcluster";
    /// On a LogicalCluster, until everything in the workspace is gone.
    pub const LOGICAL_CLUSTER_CONTENT: &str = "core.kcp.io/logicalcluster-deletion";
    /// On a LogicalCluster, until its terminators are done.
    pub const HAS_TERMINATORS: &str = "kcp.io/has-terminators";
    /// On an APIBinding, until the objects of its kinds are gone.
    pub const API_BINDING: &str = "apis.kcp.io/apibinding-finalizer";
}

/// Groups of users.
pub mod group {
    /// Administrators of everything.
    pub const ADMIN: &str = "system:kcp:admin";
    /// Those who fill new workspaces.
    pub const WORKSPACE_BOOTSTRAPPER: &str = "system:kcp:tenancy:workspace-bootstrapper";
    /// Controllers that make and remove LogicalClusters.
    pub const LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:logical-cluster-admin";
    /// The same from outside, with fewer rights.
    pub const EXTERNAL_LOGICAL_CLUSTER_ADMIN: &str = "system:kcp:external-logical-cluster-admin";
    /// The ClusterRole that allows entering a workspace.
    pub const WORKSPACE_ACCESS: &str = "system:kcp:workspace:access";
}

/// Keys of a user's `extra`.
pub mod extra {
    /// Where a user is valid: `cluster:a,cluster:b`; several values must all allow.
    pub const SCOPES: &str = "authentication.kcp.io/scopes";
    /// The workspace of a ServiceAccount.
    pub const CLUSTER_NAME: &str = "authentication.kcp.io/cluster-name";
    /// The workspace in which, and below which, a user is at home: a domain that knows him says so, and nobody else can.
    pub const HOME: &str = "authentication.fairway.dev/home";
    /// Who asked for the token of a service account, or acts as somebody else: the token counts for as long as he does.
    pub const REQUESTED_BY: &str = "authentication.fairway.dev/requested-by";
    /// Further identities of the user, each as JSON.
    pub const WARRANT: &str = "authorization.kcp.io/warrant";
}

/// Before users and groups when an export's maximal permission policy is asked.
pub const POLICY_PREFIX: &str = "apis.kcp.io:binding:";

/// The initializer that waits for the APIs that a type binds.
pub const API_BINDINGS_INITIALIZER: &str = "system:apibindings";
