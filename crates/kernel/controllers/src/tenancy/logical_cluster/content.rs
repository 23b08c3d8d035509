//! Empties a workspace: its children first, then everything else, and the rights last, so that whoever has to let
//! something go still may.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_controller::Failure;
use fairway_controller::kinds::{self, Kind};
use fairway_kernel_tenancy::Severity;
use fairway_kernel_tenancy::logical_cluster::Waiting;
use fairway_kernel_tenancy::names::{APIS, CORE, TENANCY};
use kube::Client;

use crate::namespace_deletion::{Survey, remove_all};

const RBAC: &str = "rbac.authorization.k8s.io";

/// When a kind's objects are deleted; nothing for what is not deleted by itself.
fn stage(kind: &Kind) -> Option<usize> {
    if kind.namespaced || !kind.can(&["delete", "list"]) {
        return None;
    }
    match (kind.resource.group.as_str(), kind.resource.plural.as_str()) {
        (CORE, "logicalclusters") => None,
        (TENANCY, "workspaces") => Some(0),
        (APIS, "apibindings") => Some(2),
        (RBAC, _) => Some(3),
        _ => Some(1),
    }
}

/// Deletes what is there. Says what has to be waited for, if anything is left.
pub(super) async fn empty(client: &Client) -> Result<Option<Waiting>, Failure> {
    let kinds = kinds::discover(client).await?;
    let failed: Vec<&str> = kinds.failed().collect();
    if !failed.is_empty() {
        return Ok(Some(Waiting {
            reason: "DiscoveryFailed",
            severity: Severity::Error,
            message: format!("the kinds of {} are not known", failed.join(", ")),
        }));
    }
    let mut stages: BTreeMap<usize, Vec<Arc<Kind>>> = BTreeMap::new();
    for kind in kinds.iter() {
        if let Some(stage) = stage(kind) {
            stages.entry(stage).or_default().push(Arc::clone(kind));
        }
    }
    for kinds in stages.into_values() {
        let mut survey = Survey::default();
        remove_all(client, "", kinds, &mut survey).await;
        if let Some(waiting) = judge(&survey) {
            return Ok(Some(waiting));
        }
    }
    Ok(None)
}

fn judge(survey: &Survey) -> Option<Waiting> {
    if !survey.failures.is_empty() {
        return Some(Waiting {
            reason: "ContentDeletionFailed",
            severity: Severity::Error,
            message: survey.failures.join("; "),
        });
    }
    if survey.remains.is_empty() {
        return None;
    }
    let mut counts: Vec<String> = survey
        .remains
        .iter()
        .map(|it| format!("{} has {} resource instances", it.resource, it.count))
        .collect();
    counts.sort();
    let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
    for (finalizer, count) in survey.remains.iter().flat_map(|it| &it.finalizers) {
        *holders.entry(finalizer).or_default() += count;
    }
    let mut message = format!("Some resources are remaining: {}", counts.join(", "));
    if !holders.is_empty() {
        let held: Vec<String> = holders
            .iter()
            .map(|(name, count)| format!("{name} in {count} resource instances"))
            .collect();
        message += &format!(
            "; Some content in the logical cluster has finalizers remaining: {}",
            held.join(", ")
        );
    }
    Some(Waiting {
        reason: "SomeResourcesRemain",
        severity: Severity::Info,
        message,
    })
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind};

    use super::{Kind, Survey, judge, stage};
    use crate::namespace_deletion::Remains;

    #[test]
    fn children_go_first_and_rights_last() {
        for (group, plural, namespaced, want) in [
            ("tenancy.kcp.io", "workspaces", false, Some(0)),
            ("", "namespaces", false, Some(1)),
            ("tenancy.kcp.io", "workspacetypes", false, Some(1)),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                false,
                Some(1),
            ),
            ("apis.kcp.io", "apibindings", false, Some(2)),
            ("rbac.authorization.k8s.io", "clusterroles", false, Some(3)),
            ("core.kcp.io", "logicalclusters", false, None),
            ("", "configmaps", true, None),
        ] {
            let names = GroupVersionKind::gvk(group, "v1", "K");
            let kind = Kind {
                resource: ApiResource::from_gvk_with_plural(&names, plural),
                identity: String::new(),
                namespaced,
                verbs: vec!["list".to_owned(), "delete".to_owned()],
            };
            assert_eq!(stage(&kind), want, "{plural}.{group}");
        }
    }

    #[test]
    fn what_remains_is_told() {
        let mut survey = Survey::default();
        assert_eq!(judge(&survey), None);
        for (resource, finalizers) in [("b.", vec![("x/y", 1)]), ("a.g", vec![("x/y", 2)])] {
            survey.remains.push(Remains {
                resource: resource.to_owned(),
                count: 2,
                finalizers: finalizers.into_iter().map(|(f, n)| (f.to_owned(), n)).collect(),
            });
        }
        assert_eq!(
            judge(&survey).unwrap().message,
            "Some resources are remaining: a.g has 2 resource instances, b. has 2 resource instances; \
             Some content in the logical cluster has finalizers remaining: x/y in 3 resource instances"
        );
        survey.failures.push("no".to_owned());
        assert_eq!(judge(&survey).unwrap().reason, "ContentDeletionFailed");
    }
}
