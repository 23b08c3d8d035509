//! Applications in a list.

use std::collections::BTreeMap;

use fairway_gitops_sync::project::normalize_url;
use serde_json::Value;

use crate::field::{flag, list, present, qualified_name, text};
use crate::table::Table;

/// The project of an Application.
pub fn project(application: &Value) -> &str {
    match text(application, "/spec/project") {
        "" => "default",
        name => name,
    }
}

/// Where it deploys to: the server, or the name of the cluster.
pub fn server(application: &Value) -> &str {
    match text(application, "/spec/destination/server") {
        "" => text(application, "/spec/destination/name"),
        server => server,
    }
}

/// Its sources: several, or the one.
pub fn sources(application: &Value) -> Vec<Value> {
    let several = list(application, "/spec/sources");
    if !several.is_empty() {
        return several.to_vec();
    }
    first_source(application).into_iter().collect()
}

/// Whether it has several sources.
pub fn has_several_sources(application: &Value) -> bool {
    !list(application, "/spec/sources").is_empty()
}

/// The source that lists show: the one, the first of several, or what a hydrator writes.
pub fn first_source(application: &Value) -> Option<Value> {
    if let Some(hydrator) = present(application, "/spec/sourceHydrator") {
        return Some(serde_json::json!({
            "repoURL": text(hydrator, "/drySource/repoURL"),
            "path": text(hydrator, "/syncSource/path"),
            "targetRevision": text(hydrator, "/syncSource/targetBranch"),
        }));
    }
    let several = list(application, "/spec/sources").first();
    several.or_else(|| present(application, "/spec/source")).cloned()
}

/// Whether it syncs without being asked.
pub fn is_automated(spec: &Value) -> bool {
    present(spec, "/syncPolicy/automated").is_some_and(|it| it.get("enabled") != Some(&Value::Bool(false)))
}

fn sync_policy(application: &Value) -> &'static str {
    match (
        is_automated(&application["spec"]),
        flag(application, "/spec/syncPolicy/automated/prune"),
    ) {
        (false, _) => "Manual",
        (true, false) => "Auto",
        (true, true) => "Auto-Prune",
    }
}

/// Types of conditions with their numbers.
fn conditions(application: &Value) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for condition in list(application, "/status/conditions") {
        *counts.entry(text(condition, "/type")).or_default() += 1;
    }
    let words = counts.into_iter().map(|(kind, count)| match count {
        1 => kind.to_owned(),
        count => format!("{kind}({count})"),
    });
    match words.collect::<Vec<_>>() {
        none if none.is_empty() => "<none>".to_owned(),
        mut some => {
            some.sort();
            some.join(",")
        }
    }
}

/// The table of Applications.
pub fn table(applications: &[Value], wide: bool) -> String {
    let mut headings = vec![
        "NAME",
        "CLUSTER",
        "NAMESPACE",
        "PROJECT",
        "STATUS",
        "HEALTH",
        "SYNCPOLICY",
        "CONDITIONS",
    ];
    if wide {
        headings.extend(["REPO", "PATH", "TARGET"]);
    }
    let mut table = Table::default();
    table.line(headings);
    for application in applications {
        let mut cells = vec![
            qualified_name(application),
            server(application).to_owned(),
            text(application, "/spec/destination/namespace").to_owned(),
            project(application).to_owned(),
            text(application, "/status/sync/status").to_owned(),
            text(application, "/status/health/status").to_owned(),
            sync_policy(application).to_owned(),
            conditions(application),
        ];
        if wide {
            let source = first_source(application).unwrap_or_default();
            cells.extend(["/repoURL", "/path", "/targetRevision"].map(|it| text(&source, it).to_owned()));
        }
        table.line(cells);
    }
    table.render()
}

/// What a list is narrowed by; what is empty does not narrow.
#[derive(Clone, Debug, Default)]
pub struct Filter<'a> {
    /// Projects.
    pub projects: &'a [String],
    /// The repository of a source.
    pub repository: &'a str,
    /// The destination, by server or name.
    pub cluster: &'a str,
}

impl Filter<'_> {
    /// Whether an Application is wanted.
    pub fn wants(&self, application: &Value) -> bool {
        let destination = |field: &str| text(application, &format!("/spec/destination/{field}"));
        let repository = normalize_url(self.repository);
        (self.projects.is_empty() || self.projects.iter().any(|it| it == project(application)))
            && (self.repository.is_empty()
                || sources(application)
                    .iter()
                    .any(|it| normalize_url(text(it, "/repoURL")) == repository))
            && (self.cluster.is_empty()
                || [destination("server"), destination("name")].contains(&self.cluster))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guestbook() -> Value {
        json!({
            "metadata": {"namespace": "argocd", "name": "guestbook"},
            "spec": {
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
                "source": {"repoURL": "https://git/apps.git", "path": "guestbook", "targetRevision": "HEAD"},
                "syncPolicy": {"automated": {"prune": true}},
            },
            "status": {
                "sync": {"status": "Synced"}, "health": {"status": "Healthy"},
                "conditions": [{"type": "SyncError"}, {"type": "OrphanedResourceWarning"}, {"type": "SyncError"}],
            },
        })
    }

    #[test]
    fn a_list_has_the_columns_of_argocd() {
        let bare =
            json!({"metadata": {"name": "bare"}, "spec": {"project": "p", "destination": {"name": "spoke"}}});
        assert_eq!(
            table(&[guestbook(), bare.clone()], false),
            "NAME              CLUSTER                         NAMESPACE  PROJECT  STATUS  HEALTH   SYNCPOLICY  CONDITIONS\n\
             argocd/guestbook  https://kubernetes.default.svc  web        default  Synced  Healthy  Auto-Prune  OrphanedResourceWarning,SyncError(2)\n\
             bare              spoke                                      p                         Manual      <none>\n"
        );
        let wide = table(&[guestbook(), bare], true);
        assert!(
            wide.lines()
                .next()
                .unwrap()
                .ends_with("REPO                  PATH       TARGET"),
            "{wide}"
        );
        assert!(wide.contains("https://git/apps.git  guestbook  HEAD"), "{wide}");
    }

    #[test]
    fn filters() {
        let wanted = |projects: &[&str], repository: &str, cluster: &str| {
            let projects: Vec<String> = projects.iter().map(|it| (*it).to_owned()).collect();
            Filter {
                projects: &projects,
                repository,
                cluster,
            }
            .wants(&guestbook())
        };
        for (projects, repository, cluster, expected) in [
            (&[][..], "", "", true),
            (&["other", "default"], "", "", true),
            (&["other"], "", "", false),
            (&[], "https://git/apps", "", true),
            (&[], "https://git/else", "", false),
            (&[], "", "https://kubernetes.default.svc", true),
            (&[], "", "in-cluster", false),
        ] {
            assert_eq!(
                wanted(projects, repository, cluster),
                expected,
                "{projects:?} {repository} {cluster}"
            );
        }
    }

    #[test]
    fn a_disabled_automation_is_none() {
        let mut application = guestbook();
        application["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false);
        assert_eq!(sync_policy(&application), "Manual");
    }

    #[test]
    fn a_hydrator_has_a_source() {
        let application = json!({"spec": {"sourceHydrator": {
            "drySource": {"repoURL": "r", "path": "dry", "targetRevision": "main"},
            "syncSource": {"targetBranch": "env", "path": "out"},
        }}});
        assert_eq!(
            first_source(&application),
            Some(json!({"repoURL": "r", "path": "out", "targetRevision": "env"}))
        );
    }
}
