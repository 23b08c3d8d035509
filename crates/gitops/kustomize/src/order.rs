//! The order in which resources are written.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::fieldspec::sort_text;
use crate::id::{Gvk, NOT_A_NAMESPACE, ResId};
use crate::kustomization::{LegacyOrder, SortOptions};
use crate::openapi::OpenApi;
use crate::resmap::ResMap;

/// Kinds that others need to be there, in their order.
const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
/// Kinds that stand in the way of others.
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// The place of a kind in the order: negative for the first, zero for most, positive for the last.
pub(crate) fn kind_rank(kind: &str) -> isize {
    let at = |list: &[&str]| list.iter().position(|known| *known == kind);
    match (at(&FIRST), at(&LAST)) {
        (_, Some(index)) => index as isize + 1,
        (Some(index), None) => index as isize - FIRST.len() as isize,
        (None, None) => 0,
    }
}

/// Sorts by the options of a kustomization.
pub(crate) fn sort(resources: &mut ResMap, options: &SortOptions, api: &OpenApi) -> Result<()> {
    match (options.order.as_str(), &options.legacy) {
        ("fifo", Some(_)) => Err(Error::new(
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'",
        )),
        ("fifo", None) => Ok(()),
        ("legacy", order) => legacy(resources, order.as_ref(), api),
        _ => Err(Error::new(
            "the field 'sortOptions.order' must be one of [fifo, legacy]",
        )),
    }
}

/// Sorts by kind and name, with kinds in an order of their own.
pub(crate) fn legacy(resources: &mut ResMap, order: Option<&LegacyOrder>, api: &OpenApi) -> Result<()> {
    let ranks = order.map(ranks);
    let rank = |kind: &str| match &ranks {
        Some(ranks) => ranks.get(kind).copied().unwrap_or(0),
        None => kind_rank(kind),
    };
    resources.sort_by_cached_key(
        api,
        |id| {
            let by_kind = sort_text(&id.gvk);
            (rank(&id.gvk.kind), by_kind, name_text(id), id.gvk.clone())
        },
        |left, right| {
            left.0
                .cmp(&right.0)
                .then_with(|| {
                    // Namespaces without a group come before those of others.
                    let backwards = left.3.kind == "Namespace"
                        && right.3.kind == "Namespace"
                        && left.3 != right.3
                        && (left.3.group.is_empty() || right.3.group.is_empty());
                    match backwards {
                        true => right.1.cmp(&left.1),
                        false => left.1.cmp(&right.1),
                    }
                })
                .then_with(|| left.2.cmp(&right.2))
        },
    )
}

fn ranks(order: &LegacyOrder) -> HashMap<&str, isize> {
    let mut ranks = HashMap::new();
    for (at, kind) in order.first.iter().enumerate() {
        ranks.insert(kind.as_str(), at as isize - order.first.len() as isize);
    }
    for (at, kind) in order.last.iter().enumerate() {
        ranks.insert(kind.as_str(), at as isize + 1);
    }
    ranks
}

fn name_text(id: &ResId) -> String {
    let gvk: &Gvk = &id.gvk;
    let namespace = match id.namespace.as_str() {
        "" | NOT_A_NAMESPACE => "~X",
        other => other,
    };
    let name = match id.name.is_empty() {
        true => "~N",
        false => &id.name,
    };
    format!("{gvk}|{namespace}|{name}")
}
