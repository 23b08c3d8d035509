//! Whether a user may be in a workspace at all, before anything inside it is asked.
//!
//! The root workspace is open: its own roles decide. Any other is entered by whoever its parent lets in (`access` on the
//! workspace, or on `workspaces/content`), by whoever its own roles let in (`access` on the path `/`), by its own
//! service accounts, by users who are at home in it or above it, by nodes, and by the platform itself. The root is above every workspace, so
//! to be at home there opens none of them. Who is not let in is told the same whether the workspace exists or not.
//! A workspace may require groups of whoever comes from outside, and may be taken offline.

use std::borrow::Cow;

use fairway_kernel_authz::{Attributes, PRIVILEGED_GROUP, ResourceAttributes, UserInfo, node};

use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::logical_cluster::required_groups_met;
use fairway_kernel_tenancy::names::{CORE, TENANCY, extra};

use crate::authn::Peer;
use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::request::RequestInfo;
use crate::status::{About, ApiError};
use crate::workspaces::{EVERY_CLUSTER, Phase, Workspace};

/// The verb.
const ACCESS: &str = "access";

/// Lets a user in, or says why not.
pub fn enter(kernel: &Kernel, peer: &Peer, user: &UserInfo, info: &RequestInfo) -> Result<(), ApiError> {
    let cluster = info.cluster.as_str();
    if cluster == ROOT_CLUSTER {
        return Ok(());
    }
    // Machines of every workspace run on nodes, whose authorizer judges by what is placed on them.
    let is_node = node::name_of(user).is_some();
    let privileged = peer.inside || user.in_group(PRIVILEGED_GROUP) || is_node;
    if cluster.is_empty() {
        // To everybody outside it is forbidden, as in kcp: its clients take that for "not there, or not for you".
        return Err(match peer.inside {
            true => ApiError::workspace_not_found(&info.workspace),
            false => refusal(user, info),
        });
    }
    if privileged {
        check_everywhere(info)?;
        let is_inactive = !peer.inside && kernel.workspaces.is_inactive(cluster);
        return check_active(is_inactive, info);
    }
    if cluster == EVERY_CLUSTER {
        return Err(refusal(user, info));
    }
    let workspace = kernel.workspaces.get(cluster);
    if !is_let_in(kernel, user, cluster, workspace.as_ref()) {
        return Err(refusal(user, info));
    }
    if let Some(workspace) = &workspace {
        check_active(workspace.is_inactive, info)?;
    }
    match workspace.map(|w| w.phase) {
        Some(Phase::Initializing) => Err(ApiError::forbidden_text(format!(
            "workspace {:?} is being initialized; try again when its phase is Ready",
            info.workspace
        ))),
        _ => Ok(()),
    }
}

/// In a workspace that is offline one can only see that it is, and put it online.
fn check_active(is_inactive: bool, info: &RequestInfo) -> Result<(), ApiError> {
    if !is_inactive {
        return Ok(());
    }
    let is_about_itself = info.path.starts_with("/openapi")
        || info
            .path
            .starts_with("/apis/core.kcp.io/v1alpha1/logicalclusters");
    if is_about_itself {
        return Ok(());
    }
    let about = About {
        group: CORE,
        resource: "logicalclusters",
        name: &info.cluster,
    };
    Err(ApiError::forbidden(about, "logical cluster is marked inactive"))
}

/// Over all workspaces one can only look, and only at resources or at what there is.
fn check_everywhere(info: &RequestInfo) -> Result<(), ApiError> {
    let looks = match &info.resource {
        None => true,
        Some(path) => {
            matches!(info.verb, "list" | "watch") && path.namespace.is_none() && path.name.is_empty()
        }
    };
    if info.cluster == EVERY_CLUSTER && !looks {
        return Err(ApiError::method_not_allowed());
    }
    Ok(())
}

/// Whether a workspace knows somebody at all: whoever is not let in is nobody there, also to those who ask about his token.
pub(crate) fn knows(kernel: &Kernel, user: &UserInfo, cluster: &str) -> bool {
    cluster == ROOT_CLUSTER
        || user.in_group(PRIVILEGED_GROUP)
        || node::name_of(user).is_some()
        || is_let_in(kernel, user, cluster, kernel.workspaces.get(cluster).as_ref())
}

fn is_let_in(kernel: &Kernel, user: &UserInfo, cluster: &str, workspace: Option<&Workspace>) -> bool {
    if is_at_home(user, cluster) {
        return true;
    }
    let required = workspace.and_then(|w| w.required_groups.as_deref());
    if required.is_some_and(|required| !required_groups_met(required, &user.groups)) {
        return false;
    }
    if is_in_own_house(kernel, user, cluster) {
        return true;
    }
    let inside = Attributes {
        user,
        verb: ACCESS,
        path: "/",
        resource: None,
    };
    if kernel
        .authorizer
        .with(cluster, |p| p.authorize(&inside))
        .is_allowed()
    {
        return true;
    }
    let Some(workspace) = workspace else {
        return false;
    };
    ["", "content"].iter().any(|subresource| {
        let in_parent = Attributes {
            user,
            verb: ACCESS,
            path: "",
            resource: Some(ResourceAttributes {
                group: TENANCY,
                version: "v1alpha1",
                resource: "workspaces",
                subresource,
                name: &workspace.name,
                ..ResourceAttributes::default()
            }),
        };
        let parent = &workspace.parent;
        kernel
            .authorizer
            .with(parent, |p| p.authorize(&in_parent))
            .is_allowed()
    })
}

/// A service account is authenticated in its own workspace only, so to be one is to be at home.
fn is_at_home(user: &UserInfo, cluster: &str) -> bool {
    let home = user.extra.get(extra::CLUSTER_NAME);
    home.is_some_and(|home| home.iter().any(|id| id == cluster))
}

/// A user whom a domain knows as one of this workspace or of one above it, the root excepted. What he may do inside, its roles say.
fn is_in_own_house(kernel: &Kernel, user: &UserInfo, cluster: &str) -> bool {
    let home = user.extra.get(extra::HOME);
    home.is_some_and(|home| {
        home.iter()
            .any(|top| top != ROOT_CLUSTER && kernel.workspaces.is_within(cluster, top))
    })
}

/// The id of a workspace that is not there yet, in a request that may be about to make it: its LogicalCluster is
/// created in itself.
pub(crate) fn unborn(named: &str, path: &str) -> Option<Box<str>> {
    let is_id = ClusterId::parse(named).is_ok() && path.contains("/apis/core.kcp.io/");
    is_id.then(|| named.into())
}

/// A user as another workspace knows him: service accounts and those whom somebody only acts as are known at home alone.
pub fn as_seen_in<'a>(user: &'a UserInfo, here: &str, there: &str) -> Cow<'a, UserInfo> {
    let is_account = user.name.starts_with("system:serviceaccount:");
    let is_scoped = user.extra.contains_key(extra::SCOPES);
    if here == there || !(is_account || is_scoped) {
        return Cow::Borrowed(user);
    }
    Cow::Owned(UserInfo::new("system:anonymous", [crate::authn::AUTHENTICATED]))
}

fn refusal(user: &UserInfo, info: &RequestInfo) -> ApiError {
    ApiError::forbidden_text(format!(
        "User {:?} cannot access workspace {:?}: it does not exist or access is not permitted",
        user.name, info.workspace
    ))
}
