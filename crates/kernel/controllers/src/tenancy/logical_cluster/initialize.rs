//! What a new workspace begins with: its creator as administrator, the namespace `default`, and the APIs of its type.

use std::collections::HashMap;

use fairway_controller::Requests;
use fairway_controller::{Failure, ObjectKey, WorkspaceId};
use fairway_kernel_tenancy::binding::{ApiBinding, default_binding, default_name};
use fairway_kernel_tenancy::bootstrap::creator_binding;
use fairway_kernel_tenancy::logical_cluster::{LogicalCluster, Phase, Progress, Waiting};
use fairway_kernel_tenancy::names::API_BINDINGS_INITIALIZER;
use fairway_kernel_tenancy::types::DefaultBinding;
use fairway_kernel_tenancy::{ClusterId, Severity};
use serde_json::{Value, json};

use super::super::paths::BINDINGS;
use super::Clusters;

/// The initializer of the type `universal`, which is the system's own.
const UNIVERSAL: &str = "root:universal";
const CLUSTER_ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Does what is the system's to do. Says how far it came, and whether the LogicalCluster may have changed meanwhile.
pub(super) async fn initialize(
    clusters: &Clusters,
    inside: &Requests,
    workspace: &WorkspaceId,
    cluster: &LogicalCluster,
    object: &Value,
) -> Result<(Progress, bool), Failure> {
    let mut progress = Progress::default();
    let creator = object.pointer("/spec/createdBy/username").and_then(Value::as_str);
    if let Some(creator) = creator.filter(|name| cluster.phase == Phase::Scheduling && !name.is_empty()) {
        let binding = creator_binding(creator);
        inside.create(CLUSTER_ROLE_BINDINGS, &binding).await?;
    }
    if cluster.pending().iter().any(|it| it == UNIVERSAL) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        inside.create("/api/v1/namespaces", &namespace).await?;
        progress.finished.push(UNIVERSAL.to_owned());
    }
    let waits = cluster.pending().iter().any(|it| it == API_BINDINGS_INITIALIZER);
    let type_name = cluster.type_name().unwrap_or_default();
    if type_name.is_empty() || !(waits || cluster.phase == Phase::Ready) {
        return Ok((progress, false));
    }
    let wanted = match clusters.tree.named_type(type_name) {
        Ok(resolved) => resolved.default_bindings(),
        Err(error) => {
            progress.apis = waits.then(|| Err(waiting("WorkspaceTypesInvalid", error.to_string())));
            return Ok((progress, false));
        }
    };
    let (mut missing, mut touched) = (Vec::new(), false);
    for default in wanted.iter().filter(|it| waits || it.maintain) {
        let state = bind(clusters, inside, workspace, default).await?;
        touched |= state != Bound::Before;
        missing.extend(match state {
            Bound::Before | Bound::Now => None,
            Bound::Not(why) => Some(why),
        });
    }
    if waits && missing.is_empty() {
        progress.finished.push(API_BINDINGS_INITIALIZER.to_owned());
        progress.apis = Some(Ok(()));
    } else if waits {
        progress.apis = Some(Err(waiting("WaitingOnAPIBindings", missing.join("; "))));
    }
    Ok((progress, touched))
}

fn waiting(reason: &'static str, message: String) -> Waiting {
    Waiting {
        reason,
        severity: Severity::Info,
        message,
    }
}

#[derive(PartialEq)]
enum Bound {
    Before,
    Now,
    Not(String),
}

fn name_of(workspace: &WorkspaceId, default: &DefaultBinding) -> Option<(ClusterId, String)> {
    let here = ClusterId::parse(workspace.as_str()).ok()?;
    let name = default_name(&here, &default.path, &default.export);
    Some((here, name))
}

/// Makes a binding that the type wants, and takes it as far as it can go.
async fn bind(
    clusters: &Clusters,
    inside: &Requests,
    workspace: &WorkspaceId,
    default: &DefaultBinding,
) -> Result<Bound, Failure> {
    let Some((here, name)) = name_of(workspace, default) else {
        return Ok(Bound::Before);
    };
    let key = ObjectKey::new(workspace, "", &name);
    if clusters.apis.bindings.get(&key).is_some_and(|it| it.ready) {
        return Ok(Bound::Before);
    }
    let at = clusters.tree.resolve_from(workspace, &default.path);
    let export = at.and_then(|at| {
        clusters
            .apis
            .exports
            .get(&ObjectKey::new(&at, "", &default.export))
    });
    let Some(export) = export else {
        let (path, export) = (&default.path, &default.export);
        return Ok(Bound::Not(format!("APIExport {path}:{export} not found")));
    };
    inside
        .create(BINDINGS, &default_binding(&here, &default.path, &export))
        .await?;
    clusters.bindings.bind(&key).await?;
    let binding = inside.get(&format!("{BINDINGS}/{name}")).await?;
    let ready = binding.is_some_and(|it| ApiBinding::read(&it).is_initially_bound());
    Ok(if ready {
        Bound::Now
    } else {
        Bound::Not(format!("APIBinding {name} is not bound yet"))
    })
}

/// What types maintain, each looked up once.
#[derive(Default)]
pub(super) struct Wanted {
    of: HashMap<Box<str>, Vec<DefaultBinding>>,
}

impl Wanted {
    /// Whether everything that its type maintains is there, as far as has been seen.
    pub(super) fn is_there(&mut self, clusters: &Clusters, workspace: &WorkspaceId, type_name: &str) -> bool {
        if type_name.is_empty() {
            return true;
        }
        if !self.of.contains_key(type_name) {
            let resolved = clusters.tree.named_type(type_name);
            let mut maintained = resolved.map_or_else(|_| Vec::new(), |it| it.default_bindings());
            maintained.retain(|it| it.maintain);
            self.of.insert(type_name.into(), maintained);
        }
        self.of.get(type_name).into_iter().flatten().all(|default| {
            name_of(workspace, default).is_none_or(|(_, name)| {
                let key = ObjectKey::new(workspace, "", &name);
                clusters.apis.bindings.get(&key).is_some()
            })
        })
    }
}
