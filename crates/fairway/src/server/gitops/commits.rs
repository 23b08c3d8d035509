//! Commits that notifications speak of, from where the engine has its manifests.

use std::sync::Arc;

use fairway_api::argoproj::CONTROL_PLANES;
use fairway_gitops_engine::sources::{AllSources, Repository, Sources as _};
use fairway_gitops_notifications::facts::Commit;
use fairway_gitops_notifier::{About, Commits};
use fairway_gitops_sync::project::ProjectSpec;
use futures::future::BoxFuture;
use serde_json::Value;

pub(super) struct KnownCommits(pub(super) Arc<AllSources>);

impl Commits for KnownCommits {
    fn commit<'a>(&'a self, about: About<'a>, hash: &'a str) -> BoxFuture<'a, Result<Commit, String>> {
        Box::pin(async move {
            let repository = repository(&about)?;
            let known = self.0.metadata(&repository, hash).await;
            let known = known.map_err(|error| format!("the commit {hash} is not known: {error}"))?;
            Ok(Commit {
                message: known.message,
                author: known.author,
                date: known.date,
                tags: known.tags,
            })
        })
    }
}

/// The repository of an Application, if its project lets it have one there.
fn repository(about: &About<'_>) -> Result<Repository, String> {
    let spec = &about.application["spec"];
    let source = match &spec["source"] {
        Value::Null => &spec["sources"][0],
        source => source,
    };
    let url = source["repoURL"].as_str().unwrap_or("");
    let project = spec["project"]
        .as_str()
        .filter(|name| !name.is_empty())
        .unwrap_or("default");
    let namespace = about.application["metadata"]["namespace"].as_str().unwrap_or("");
    let is_in_plane = CONTROL_PLANES.contains(&namespace);
    let is_permitted = match about.project {
        // Until somebody writes it, the default project permits everything in the control plane's namespace.
        Value::Null => project == "default" && is_in_plane,
        object => serde_json::from_value::<ProjectSpec>(object["spec"].clone()).is_ok_and(|spec| {
            spec.permits_source(url) && (is_in_plane || spec.permits_application_in(namespace))
        }),
    };
    match is_permitted && !url.is_empty() {
        true => Ok(Repository {
            workspace: about.workspace.clone(),
            project: project.to_owned(),
            url: url.to_owned(),
            chart: source["chart"].as_str().unwrap_or("").to_owned(),
        }),
        false => Err(format!(
            "project {project} does not permit the repository {url:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_repositories_of_the_project_are_asked() {
        let plane = json!({"namespace": "argocd"});
        let one =
            json!({"metadata": plane, "spec": {"source": {"repoURL": "https://git/a"}, "project": "shop"}});
        let two = json!({"metadata": plane, "spec": {"sources": [{"repoURL": "https://git/a"}, {"repoURL": "https://git/b"}]}});
        let permits = json!({"spec": {"sourceRepos": ["https://git/a"]}});
        let forbids = json!({"spec": {"sourceRepos": ["https://git/b"]}});
        for (application, project, expected) in [
            (&one, &permits, true),
            (&one, &forbids, false),
            (&one, &Value::Null, false),
            (&two, &Value::Null, true),
            (&two, &forbids, false),
            (&json!({"metadata": plane, "spec": {}}), &permits, false),
            (
                &json!({"metadata": {"namespace": "team"}, "spec": one["spec"]}),
                &permits,
                false,
            ),
        ] {
            let about = About {
                workspace: &WorkspaceId::root(),
                application,
                project,
            };
            let found = repository(&about);
            assert_eq!(found.is_ok(), expected, "{application} {project}: {found:?}");
        }
    }
}
