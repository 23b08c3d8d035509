//! Workspaces, their types and what they share: who may create what where, and what the server itself adds.
//!
//! The decisions are `fairway_kernel_tenancy`'s; here they are given the objects and the answers of the authorizer that
//! they ask for.

use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_authz::{Attributes, ResourceAttributes};
use fairway_kernel_tenancy::export::BindQuestion;
use fairway_kernel_tenancy::locks::{Holder, Locks};
use fairway_kernel_tenancy::logical_cluster::{self, LogicalCluster, is_privileged};
use fairway_kernel_tenancy::names::{APIS, CORE, LOGICAL_CLUSTER, TENANCY, annotation, finalizer, label};
use fairway_kernel_tenancy::types::{self, TypeReference, WorkspaceType};
use fairway_kernel_tenancy::{ClusterId, WorkspacePath, binding, claims, export, schema, workspace};
use serde_json::{Value, json};

use super::Operation;
use crate::access::as_seen_in;
use crate::custom::Origin;
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix, ROOT_CLUSTER};
use crate::rest::call::{Call, meta, metadata_mut};
use crate::status::ApiError;
use crate::workspaces::{Limits, Phase};

/// Annotations and labels of these domains are the system's.
const RESERVED_DOMAIN: &str = "kcp.io";
/// And these of them are not.
const OPEN_KEYS: [&str; 5] = [
    "syncagent.kcp.io/agent-name",
    "experimental.tenancy.kcp.io/owner",
    "authorization.kcp.io/required-groups",
    annotation::PATH,
    annotation::CLUSTER,
];

fn concerns(call: &Call<'_>) -> bool {
    call.def.group.ends_with(".kcp.io") && call.def.prefix.identity() == BUILTIN_IDENTITY
}

/// Refuses a new object where the workspace is full. What the system keeps about the workspace itself, and the trace of
/// what happened, always fit.
pub(super) fn fits(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    if call.cluster == ROOT_CLUSTER || concerns(call) || call.def.resource == "events" {
        return Ok(());
    }
    let limits = call
        .kernel
        .workspaces
        .get(call.cluster)
        .map(|w| w.limits)
        .unwrap_or_default();
    if limits == Limits::default() {
        return Ok(());
    }
    let held = call.kernel.storage.cache.usage(call.cluster);
    let full = |what: &str, held: u64, limit: Option<u64>| {
        let limit = limit.filter(|limit| held >= *limit)?;
        Some(format!(
            "logical cluster {:?} has reached its total object {what} limit ({held}/{limit} {}); delete objects to free up \
             capacity",
            call.cluster,
            if what == "count" { "objects" } else { "bytes" }
        ))
    };
    let objection =
        full("count", held.objects, limits.objects).or_else(|| full("size", held.bytes, limits.bytes));
    match objection {
        Some(why) => Err(ApiError::forbidden(call.about(meta(object, "name")), why)),
        None => Ok(()),
    }
}

/// Completes a Workspace: who made it, of which type it is.
pub(super) fn complete(call: &Call<'_>, operation: Operation, object: &mut Value) -> Result<(), ApiError> {
    if operation == Operation::Create && call.def.is(APIS, "apibindings") {
        complete_binding(call, object);
    }
    if operation != Operation::Create || !call.def.is(TENANCY, "workspaces") {
        return Ok(());
    }
    let refuse = |why: String| ApiError::forbidden(call.about(meta(object, "name")), why);
    let parent = logical_cluster(call.kernel, call.cluster)
        .ok_or_else(|| refuse("the workspace that it would be in has no LogicalCluster".to_owned()))?;
    let user = call.user;
    let creator = json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra});
    let is_system = is_privileged(&user.groups);
    let requested: Option<TypeReference> = serde_json::from_value(object["spec"]["type"].clone()).ok();
    let is_mount = object.pointer("/spec/mount").is_some_and(|m| !m.is_null());
    if !is_mount {
        let here = path_of(call.kernel, call.cluster);
        let here_type = parent.type_name().unwrap_or_default().to_owned();
        let lookup = |path: &WorkspacePath, name: &str| workspace_type(call.kernel, path, name);
        let admitted = types::admit(&here, &here_type, requested.as_ref(), &lookup)
            .map_err(|error| refuse(error.to_string()))?;
        for question in &admitted.questions {
            if !may(
                call,
                question.cluster.as_str(),
                TENANCY,
                "use",
                "workspacetypes",
                &question.name,
            ) {
                return Err(refuse(question.refusal.clone()));
            }
        }
        let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            for (key, value) in admitted.labels {
                labels.entry(key).or_insert_with(|| value.into());
            }
        }
        object["spec"]["type"] = json!({"name": admitted.reference.name, "path": admitted.reference.path});
    }
    workspace::prepare_create(object, (!is_system).then_some(&creator), &parent);
    Ok(())
}

/// An APIBinding says by a label which export it is about, and does not go before the objects that it brought.
fn complete_binding(call: &Call<'_>, object: &mut Value) {
    let reference = &object["spec"]["reference"]["export"];
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let path = if text("path").is_empty() {
        call.cluster
    } else {
        text("path")
    };
    let cluster = call.kernel.workspaces.resolve(path);
    let cluster = cluster.and_then(|cluster| ClusterId::parse(&cluster).ok());
    let export = cluster.map(|cluster| claims::export_label_value(&cluster, text("name")));
    let metadata = metadata_mut(object);
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let (Some(labels), Some(export)) = (labels.as_object_mut(), export) {
        labels.insert(label::EXPORT.to_owned(), export.into());
    }
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|f| f == finalizer::API_BINDING)
    {
        finalizers.push(finalizer::API_BINDING.into());
    }
}

/// Says no to what only the system may do, and to what does not fit.
pub(super) fn confirm(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if operation == Operation::Create {
        workspace_stays(call, object)?;
    }
    if call.def.is("apiextensions.k8s.io", "customresourcedefinitions") && operation == Operation::Create {
        return definition_is_free(call, object);
    }
    if !concerns(call) {
        return Ok(());
    }
    let is_system = is_privileged(&call.user.groups);
    let worker = call.visit.and_then(|visit| visit.worker.as_ref());
    let objection = match (call.def.group.as_str(), call.def.resource.as_str(), operation) {
        (TENANCY, "workspaces" | "workspacetypes", Operation::Update)
            if call.subresource() == Some("status") && !is_system =>
        {
            Some(format!("{} status updates not permitted", call.def.singular))
        }
        (TENANCY, "workspaces", Operation::Create | Operation::Update) => {
            workspace::objection_to(object, old, is_system).map(str::to_owned)
        }
        (TENANCY, "workspacetypes", Operation::Create | Operation::Update) => ClusterId::parse(call.cluster)
            .ok()
            .and_then(|here| types::objection_to(object, &here))
            .or_else(|| (!is_system).then(|| may_offer(call, object, old)).flatten()),
        (CORE, "logicalclusters", Operation::Update) if worker.is_some() => {
            worker.and_then(|worker| worker.objection_to_update(object, old?))
        }
        (CORE, "logicalclusters", _) if is_system => None,
        (CORE, "logicalclusters", Operation::Create) => Some("LogicalCluster cannot be created".to_owned()),
        (CORE, "logicalclusters", Operation::Delete) => (!LogicalCluster::read(object).directly_deletable)
            .then(|| "LogicalCluster cannot be deleted".to_owned()),
        (CORE, "logicalclusters", Operation::Update) => {
            old.and_then(|old| logical_cluster::objection_to_update(object, old))
        }
        // The system binds what a type begins with.
        (APIS, "apibindings", Operation::Create) if is_system => None,
        (APIS, "apibindings", Operation::Create) => {
            let reference = &object["spec"]["reference"]["export"];
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            may_bind(call, text("path"), text("name"), "create APIBinding")
        }
        (APIS, "apibindings" | "apiexports", Operation::Update)
            if call.subresource() == Some("status") && !is_system =>
        {
            let what = call.def.singular.as_str();
            Some(format!("{what} status updates not permitted"))
        }
        _ => None,
    };
    let errors = match (call.def.group.as_str(), call.def.resource.as_str(), operation) {
        (_, _, Operation::Delete) => Vec::new(),
        (APIS, "apibindings", _) => binding::objections(object, old),
        (APIS, "apiexports", _) => export::objections(object),
        (APIS, "apiresourceschemas", _) => schema::objections(object, old),
        _ => Vec::new(),
    };
    if !errors.is_empty() {
        return Err(ApiError::invalid(call.about_kind(meta(object, "name")), &errors));
    }
    let objection = objection.or_else(|| {
        (!is_system && operation == Operation::Update)
            .then(|| reserved_change(object, old?))
            .flatten()
    });
    match objection {
        Some(why) => Err(ApiError::forbidden(call.about(meta(object, "name")), why)),
        None => Ok(()),
    }
}

/// What is being emptied gets nothing new, or it would never be empty. Terminators may still need something.
fn workspace_stays(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let goes = matches!(call.kernel.workspaces.get(call.cluster), Some(it) if it.phase == Phase::Deleting);
    let is_emptied =
        || logical_cluster(call.kernel, call.cluster).is_some_and(|it| it.terminators.is_empty());
    if goes && is_emptied() && !call.def.is("", "events") && !call.def.is("events.k8s.io", "events") {
        let why = "unable to create new content in this workspace because it is being deleted";
        return Err(ApiError::forbidden(call.about(meta(object, "name")), why));
    }
    Ok(())
}

/// The list of who brings which resource into the workspace, in which a definition did not find its own. A binding writes
/// itself into it and looks for definitions afterwards; so of a definition and a binding that come at the same moment, one
/// finds the other, whichever is first.
pub(super) fn definition_relies_on(call: &Call<'_>, object: &Value) -> Result<Vec<(Bytes, u64)>, ApiError> {
    let prefix = KindPrefix::new(CORE, "logicalclusters", BUILTIN_IDENTITY);
    let suffix = ObjectSuffix::new(call.cluster, "", LOGICAL_CLUSTER);
    let kind = call.kernel.storage.cache.kind(prefix.as_str());
    let revision = kind.get(suffix.as_str()).map(|cluster| cluster.revision());
    // Judged after the revision is known: if it is judged by a newer list, the write is tried again.
    definition_is_free(call, object)?;
    Ok(revision
        .map(|revision| (prefix.object(&suffix), revision))
        .into_iter()
        .collect())
}

/// A kind that the system or a binding brings cannot be defined once more.
fn definition_is_free(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let plural = object["spec"]["names"]["plural"].as_str().unwrap_or_default();
    let cluster = logical_cluster(call.kernel, call.cluster);
    let locks = cluster
        .as_ref()
        .and_then(|it| it.meta.annotation(annotation::RESOURCE_BINDINGS));
    if let Some(Holder::Binding(name)) = Locks::parse(locks).holder(group, plural) {
        let why = format!("cannot create because resource is bound by APIBinding {name:?}");
        return Err(ApiError::forbidden(call.about(meta(object, "name")), why));
    }
    let registry = call.kernel.apis.of(call.cluster);
    let taken = registry.any_version(group, plural).and_then(|def| def.custom());
    let why = match taken.map(|custom| &custom.origin) {
        Some(Origin::System) => format!("{group} is a reserved group"),
        Some(Origin::Provided) => {
            return crate::custom::provided::objection(call, object).map_or(Ok(()), Err);
        }
        Some(Origin::Export { .. }) => "cannot create because resource is bound by an APIBinding".to_owned(),
        _ => return Ok(()),
    };
    Err(ApiError::forbidden(call.about(meta(object, "name")), why))
}

/// What speaks against binding to an export, in the words of kcp.
fn may_bind(call: &Call<'_>, path: &str, name: &str, action: &str) -> Option<String> {
    let question = BindQuestion::new(path, name, &path_of(call.kernel, call.cluster), action);
    let cluster = call.kernel.workspaces.resolve(question.path.as_str());
    let allowed = cluster.is_some_and(|cluster| {
        let exists = (call.kernel.storage.cache)
            .built_in(APIS, "apiexports", &cluster, "", name)
            .is_some();
        exists && may(call, &cluster, APIS, "bind", "apiexports", name)
    });
    (!allowed).then_some(question.refusal)
}

/// What speaks against the APIs that a type names for its workspaces. The system will bind them there, so whoever names one
/// must be allowed to bind it; what the type had before is not asked again.
fn may_offer(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Option<String> {
    let list = |object: &Value| -> Vec<Value> {
        let all = object["spec"]["defaultAPIBindings"].as_array();
        all.cloned().unwrap_or_default()
    };
    let before = old.map(list).unwrap_or_default();
    list(object)
        .iter()
        .filter(|it| !before.contains(it))
        .find_map(|it| {
            let text = |field: &str| it[field].as_str().unwrap_or_default();
            may_bind(
                call,
                text("path"),
                text("export"),
                "create or update WorkspaceType",
            )
        })
}

/// A change of an annotation or label that is the system's.
fn reserved_change(object: &Value, old: &Value) -> Option<String> {
    for (field, what) in [("annotations", "annotation"), ("labels", "label")] {
        let (now, before) = (&object["metadata"][field], &old["metadata"][field]);
        let keys = [now, before]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|m| m.keys());
        for key in keys {
            let domain = key.split('/').next().unwrap_or_default();
            if domain.ends_with(RESERVED_DOMAIN)
                && !OPEN_KEYS.contains(&key.as_str())
                && now[key] != before[key]
            {
                return Some(format!("modification of reserved {what}: {key:?}"));
            }
        }
    }
    None
}

/// Whether the user may do something with a tenancy object of another workspace, as he is known there.
fn may(call: &Call<'_>, cluster: &str, group: &str, verb: &str, resource: &str, name: &str) -> bool {
    let user = as_seen_in(call.user, call.cluster, cluster);
    let attributes = Attributes {
        user: &user,
        verb,
        path: "",
        resource: Some(ResourceAttributes {
            group,
            version: "v1alpha1",
            resource,
            name,
            ..ResourceAttributes::default()
        }),
    };
    call.kernel
        .authorizer
        .with(cluster, |policy| policy.authorize(&attributes))
        .is_allowed()
}

fn logical_cluster(kernel: &Kernel, cluster: &str) -> Option<LogicalCluster> {
    (kernel.storage.cache)
        .built_in_value(CORE, "logicalclusters", cluster, "", LOGICAL_CLUSTER)
        .map(|object| LogicalCluster::read(&object))
}

fn path_of(kernel: &Kernel, cluster: &str) -> WorkspacePath {
    WorkspacePath::parse(&kernel.workspaces.path(cluster)).unwrap_or_else(|_| WorkspacePath::root())
}

/// The WorkspaceType of that name in the workspace of that path.
pub(crate) fn workspace_type(
    kernel: &Kernel,
    path: &WorkspacePath,
    name: &str,
) -> Option<Arc<WorkspaceType>> {
    let cluster = kernel.workspaces.resolve(path.as_str())?;
    let object = (kernel.storage.cache).built_in_value(TENANCY, "workspacetypes", &cluster, "", name)?;
    WorkspaceType::read(&object).map(Arc::new)
}
