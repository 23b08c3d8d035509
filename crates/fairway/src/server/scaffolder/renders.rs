//! What an Application deploys of files that are in no repository yet: the renderer of the GitOps engine, told what the engine tells it.
//!
//! What is brought from elsewhere (remote bases, charts of repositories), and what an Application says of its source beyond a directory, is
//! heeded when it is synced and not known here.

use fairway_gitops_helm::{Error as HelmError, Offline, Release};
use fairway_gitops_kustomize::{ErrorKind, LoadRestrictions};
use fairway_gitops_render::{DirectorySource, Error, HelmSource, Kind, Params, Ports, render};
use fairway_gitops_tree::{Tree, path};
use fairway_portal_scaffolder::{Renderer, Unrendered};
use fairway_portal_template::files::Files;
use futures::future::BoxFuture;
use serde_json::Value;

/// Renders in this process.
pub(super) struct OwnRenderer;

impl Renderer for OwnRenderer {
    fn render<'a>(
        &'a self,
        files: &'a Files,
        application: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Value>, Unrendered>> {
        let (files, application) = (files.clone(), application.clone());
        Box::pin(async move {
            let work = tokio::task::spawn_blocking(move || rendered(&files, &application)).await;
            work.unwrap_or_else(|_| Err(Unrendered::Unknown("rendering was broken off".to_owned())))
        })
    }
}

fn rendered(files: &Files, application: &Value) -> Result<Vec<Value>, Unrendered> {
    let spec = &application["spec"];
    let source = &spec["source"];
    let beyond = ["helm", "kustomize", "plugin", "chart"];
    if let Some(field) = beyond.iter().find(|field| !source[**field].is_null()) {
        return Err(Unrendered::Unknown(format!(
            "the Application says more of its source (spec.source.{field})"
        )));
    }
    let wrong = |error: &dyn std::fmt::Display| Unrendered::Wrong(error.to_string());
    let contents = files.iter().map(|(path, file)| (path, file.content.clone()));
    let tree = Tree::of(contents).map_err(|error| wrong(&error))?;
    let directory = path::normalise(text(&source["path"])).map_err(|error| wrong(&error))?;
    let (params, kind) = told(application);
    let ports = Ports {
        environment: &Offline::default(),
        fetcher: None,
    };
    render(&tree, &directory, kind, &params, ports)
        .map(|rendered| rendered.objects)
        .map_err(|error| match is_elsewhere(&error) {
            true => Unrendered::Unknown(error.to_string()),
            false => Unrendered::Wrong(error.to_string()),
        })
}

/// What the engine tells the renderer of an Application.
fn told(application: &Value) -> (Params, Option<Kind>) {
    let mut params = Params {
        helm: HelmSource {
            release: Release {
                name: text(&application["metadata"]["name"]).to_owned(),
                namespace: text(&application["spec"]["destination"]["namespace"]).to_owned(),
                ..Release::default()
            },
            include_crds: true,
            ..HelmSource::default()
        },
        ..Params::default()
    };
    params.kustomize.load_restrictions = LoadRestrictions::RootOnly;
    let directory = &application["spec"]["source"]["directory"];
    if directory.is_null() {
        return (params, None);
    }
    params.directory = DirectorySource {
        recurse: directory["recurse"] == true,
        include: text(&directory["include"]).to_owned(),
        exclude: text(&directory["exclude"]).to_owned(),
    };
    (params, Some(Kind::Directory))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Whether something is missing that a sync fetches.
fn is_elsewhere(error: &Error) -> bool {
    match error {
        Error::Kustomize(error) => error.kind() == ErrorKind::Remote,
        Error::Helm { source, .. } => matches!(source, HelmError::MissingDependencies(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use fairway_portal_template::files::File;
    use serde_json::json;

    use super::*;

    fn said(path: &str, more: &Value) -> String {
        let mut files = Files::default();
        for (name, content) in [
            (
                "catalog-info.yaml",
                "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata: {name: web}\n",
            ),
            (
                "plain/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            ),
            (
                "plain/deeper/b.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
            ),
            (
                "kustomized/kustomization.yaml",
                "namePrefix: pre-\nresources: [../plain]\n",
            ),
            ("plain/kustomization.yaml", "resources: [a.yaml]\n"),
            (
                "remote/kustomization.yaml",
                "resources: ['https://git.example.com/a/b?ref=main']\n",
            ),
            ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            (
                "chart/templates/c.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\n",
            ),
            (
                "needy/Chart.yaml",
                "apiVersion: v2\nname: n\nversion: 1.0.0\ndependencies: [{name: d, version: 1.0.0, repository: 'https://charts.example.com'}]\n",
            ),
            ("broken/a.yaml", "a: [\n"),
        ] {
            files.write(name, File::new(content.as_bytes().to_vec())).unwrap();
        }
        let mut application = json!({
            "metadata": {"name": "app"},
            "spec": {"destination": {"namespace": "apps"}, "source": {"path": path}},
        });
        for (key, value) in more.as_object().unwrap() {
            application["spec"]["source"][key] = value.clone();
        }
        match rendered(&files, &application) {
            Ok(objects) => {
                let names = objects
                    .iter()
                    .map(|object| text(&object["metadata"]["name"]).to_owned());
                names.collect::<Vec<_>>().join(" ")
            }
            Err(Unrendered::Wrong(_)) => "wrong".to_owned(),
            Err(Unrendered::Unknown(_)) => "unknown".to_owned(),
        }
    }

    #[test]
    fn files_come_to_what_a_sync_makes_of_them() {
        for (path, more, expected) in [
            ("plain", json!({}), "a"),
            (
                "plain",
                json!({"directory": {"recurse": true, "exclude": "kustomization.yaml"}}),
                "a b",
            ),
            ("kustomized", json!({}), "pre-a"),
            ("chart", json!({}), "app"),
            // Only what the Application reads.
            (".", json!({}), "web"),
            ("remote", json!({}), "unknown"),
            ("needy", json!({}), "unknown"),
            ("chart", json!({"helm": {"values": "a: 1"}}), "unknown"),
            ("broken", json!({}), "wrong"),
            ("nowhere", json!({}), "wrong"),
            ("../out", json!({}), "wrong"),
        ] {
            assert_eq!(said(path, &more), expected, "{path} {more}");
        }
    }
}
