//! The virtual workspaces of initializers and terminators: the workspaces that wait for one, and their content.
//!
//! A controller comes in through `/services/initializingworkspaces/<name>/clusters/<workspace or *>/…` (or
//! `terminatingworkspaces`). It needs `initialize` (`terminate`) on the WorkspaceType that it belongs to, in the type's
//! workspace. Over all workspaces it sees the LogicalClusters that wait for it; in one of them it reads that LogicalCluster
//! and takes its own name off, and works on the content: within the rules that the type gives it, or else as the user who
//! made the workspace. When it has taken its name off, or the workspace does not wait for it, the door is shut.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_kernel_authz::{
    Attributes, PRIVILEGED_GROUP, PolicyRule, ResourceAttributes, UserInfo, forbidden_message,
};
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::lifecycle::{Stage, Worker};
use fairway_kernel_tenancy::logical_cluster::LogicalCluster;
use fairway_kernel_tenancy::names::{CORE, LOGICAL_CLUSTER, TENANCY, extra};
use fairway_kernel_tenancy::types::WorkspaceType;
use serde_json::Value;

use crate::kernel::Kernel;
use crate::key::ROOT_CLUSTER;
use crate::registry::{Layer, Registry, split_identity};
use crate::request::{Door, RequestInfo};
use crate::status::ApiError;
use crate::virtual_workspace::Visit;
use crate::workspaces::EVERY_CLUSTER;

const CLUSTERS: &str = "logicalclusters";

/// What a request through this door is about.
pub(crate) enum Entry {
    /// The LogicalClusters.
    Clusters(Visit),
    /// What is in a workspace, within rules.
    Ruled(Visit),
    /// What is in a workspace, as this user.
    AsCreator(UserInfo),
}

/// Opens the door, or says why not.
pub(crate) fn enter(kernel: &Kernel, user: &UserInfo, info: &RequestInfo) -> Result<Entry, ApiError> {
    let Door::Lifecycle {
        stage,
        cluster,
        type_name,
    } = &info.door
    else {
        return Err(ApiError::page_not_found());
    };
    let unknown = || {
        refusal(
            user,
            info,
            "the workspace type does not exist or access is not permitted",
        )
    };
    if kernel.workspaces.resolve(cluster).is_none() {
        return Err(unknown());
    }
    let worker = Worker {
        stage: *stage,
        cluster: ClusterId::parse(cluster).map_err(|_| unknown())?,
        type_name: type_name.clone(),
    };
    may_work(kernel, user, &worker)?;
    if info.cluster.is_empty() {
        return Err(ApiError::page_not_found());
    }
    let is_about_clusters = info
        .resource
        .as_ref()
        .map(|path| path.group == CORE && split_identity(&path.resource).0 == CLUSTERS);
    if info.cluster == EVERY_CLUSTER {
        return match (is_about_clusters, info.verb) {
            (Some(false), _) => Err(ApiError::page_not_found()),
            (Some(true), "list" | "watch") | (None, _) => Ok(Entry::Clusters(clusters(kernel, worker))),
            (Some(true), _) => Err(ApiError::method_not_allowed()),
        };
    }
    let object = (kernel.storage.cache)
        .built_in_value(CORE, CLUSTERS, &info.cluster, "", LOGICAL_CLUSTER)
        .unwrap_or(Value::Null);
    if !worker.is_awaited_by(&LogicalCluster::read(&object)) {
        return Err(ApiError::forbidden_text(format!(
            "{} {:?} cannot access this workspace",
            stage.worker(),
            worker.name()
        )));
    }
    if let (Some(true), Some(path)) = (is_about_clusters, &info.resource) {
        let is_served = match info.verb {
            "get" => true,
            "list" | "watch" => path.subresource.is_empty(),
            "update" | "patch" => path.subresource == "status",
            _ => false,
        };
        return match is_served {
            true => Ok(Entry::Clusters(clusters(kernel, worker))),
            false => Err(ApiError::method_not_allowed()),
        };
    }
    content(kernel, user, info, &worker, &object)
}

/// Whether the type's own workspace lets the user do the work.
fn may_work(kernel: &Kernel, user: &UserInfo, worker: &Worker) -> Result<(), ApiError> {
    let attributes = Attributes {
        user,
        verb: worker.stage.verb(),
        path: "",
        resource: Some(ResourceAttributes {
            group: TENANCY,
            version: "v1alpha1",
            resource: "workspacetypes",
            name: &worker.type_name,
            ..ResourceAttributes::default()
        }),
    };
    kernel.authorize(worker.cluster.as_str(), &attributes).map(|_| ())
}

/// The LogicalClusters that wait for a worker, and nothing else.
fn clusters(kernel: &Kernel, worker: Worker) -> Visit {
    let registry = kernel.apis.of(ROOT_CLUSTER);
    let only = registry.iter().filter(|def| def.is(CORE, CLUSTERS)).cloned();
    let layer = Arc::new(Layer::new(only.collect::<Vec<_>>()));
    Visit {
        labels: worker.labels(),
        worker: Some(worker),
        ..Visit::of(Arc::new(Registry::only([layer])))
    }
}

/// What is in a workspace: by the rules of the type where it has some, else as the creator.
fn content(
    kernel: &Kernel,
    user: &UserInfo,
    info: &RequestInfo,
    worker: &Worker,
    cluster: &Value,
) -> Result<Entry, ApiError> {
    let named = format!("{} {:?}", worker.stage.worker(), worker.name());
    let cache = &kernel.storage.cache;
    let home = worker.cluster.as_str();
    let kind = cache.built_in_value(TENANCY, "workspacetypes", home, "", &worker.type_name);
    // Without its type nobody knows what it may do, so it may do nothing.
    let kind = kind
        .and_then(|object| WorkspaceType::read(&object))
        .ok_or_else(|| refusal(user, info, &format!("the workspace type of {named} is gone")))?;
    let permissions = worker.stage.permissions(&kind);
    if permissions.is_empty() {
        return creator(&info.cluster, cluster).map(Entry::AsCreator).ok_or_else(|| {
            let field = match worker.stage {
                Stage::Initializing => "initializerPermissions",
                Stage::Terminating => "terminatorPermissions",
            };
            refusal(
                user,
                info,
                &format!("{named} would act as the workspace's creator, and none is recorded; give its type {field}"),
            )
        });
    }
    let rules = PolicyRule::list_from(Some(&Value::Array(permissions.to_vec())));
    let only_name = String::new();
    let mut asked = crate::authorize::attributes(user, info, &only_name);
    if !rules.iter().any(|rule| rule.allows(&asked)) {
        return Err(refusal(
            user,
            info,
            &format!("{named} is not given this by its workspace type"),
        ));
    }
    asked.verb = "create";
    Ok(Entry::Ruled(Visit {
        may_create: rules.iter().any(|rule| rule.allows(&asked)),
        is_inside: true,
        ..Visit::of(kernel.apis.of(&info.cluster))
    }))
}

/// Who made a workspace, as one who is known in that workspace only: what he may do elsewhere is not the worker's.
fn creator(id: &str, cluster: &Value) -> Option<UserInfo> {
    let by = cluster.pointer("/spec/createdBy")?;
    let name = by["username"].as_str().filter(|name| !name.is_empty())?;
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let groups = texts(&by["groups"])
        .into_iter()
        .filter(|group| group != PRIVILEGED_GROUP);
    let mut user = UserInfo::new(name, groups);
    user.extra = BTreeMap::from([(extra::SCOPES.to_owned(), vec![format!("cluster:{id}")])]);
    Some(user)
}

fn refusal(user: &UserInfo, info: &RequestInfo, why: &str) -> ApiError {
    let only_name = String::new();
    let asked = crate::authorize::attributes(user, info, &only_name);
    ApiError::forbidden_text(forbidden_message(&asked, why))
}
