//! `argocd:create-resources`: an Application for what was published.

use fairway_api::argoproj::{APP_PROJECT, APPLICATION};
use fairway_api::fairway::VOYAGE_ANNOTATION;
use serde_json::{Value, json};

use super::objects::make;
use crate::drive::{Job, Mode, StepError};
use crate::who::{collection, is_name};

/// Where OpenShift keeps Applications.
const NAMESPACE: &str = "openshift-gitops";

pub(super) async fn create(job: &mut Job<'_>) -> Result<Value, StepError> {
    let (name, url, path) = (
        job.required("appName")?,
        job.required("repoUrl")?,
        job.required("path")?,
    );
    let target = job.required("namespace")?;
    let plane = job.text("argoNamespace").unwrap_or(NAMESPACE).to_owned();
    if !is_name(&name) || !is_name(&plane) {
        return Err(StepError::Failed(format!(
            "{plane}/{name} cannot be the name of an Application"
        )));
    }
    // Backstage is told of several Argo CDs by name; a workspace has one.
    if let Some(instance) = job.text("argoInstance").map(str::to_owned) {
        job.log(&format!(
            "a workspace has one Argo CD, whatever it is called elsewhere ({instance}); the Application goes to namespace {plane}"
        ));
    }
    let is_there = ensure_namespace(job, &plane).await?;
    let project = job.text("projectName").unwrap_or("default").to_owned();
    let server = "https://kubernetes.default.svc";
    if project != "default" && is_there && is_name(&project) {
        let place = format!("{}/{project}", collection(APP_PROJECT, &plane));
        if job.requests().get(&place).await?.is_none() {
            let object = json!({
                "apiVersion": APP_PROJECT.api_version(), "kind": APP_PROJECT.kind,
                "metadata": {"name": project, "namespace": plane},
                "spec": {
                    "sourceRepos": [url], "destinations": [{"server": server, "namespace": target}],
                    "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
                },
            });
            make(
                job,
                &collection(APP_PROJECT, &plane),
                object,
                &format!("project {project}"),
            )
            .await?;
        }
    }
    let mut labels = job.input.get("labels").cloned().unwrap_or(json!({}));
    if let Some(value) = job.text("labelValue") {
        labels["backstage-name"] = value.into();
    }
    let mut object = json!({
        "apiVersion": APPLICATION.api_version(), "kind": APPLICATION.kind,
        "metadata": {
            "name": name, "namespace": plane, "labels": labels,
            // With the Application go its objects, but for those that say that they stay.
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": project,
            "source": {"repoURL": url, "path": path, "targetRevision": job.text("targetRevision").unwrap_or("main")},
            "destination": {"server": server, "namespace": target},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["ServerSideApply=true"]},
        },
    });
    if let Some(ignored) = job.input.get("ignoreDifferences") {
        object["spec"]["ignoreDifferences"] = ignored.clone();
        // Else a sync would write what the comparison does not mind.
        object["spec"]["syncPolicy"]["syncOptions"] =
            json!(["ServerSideApply=true", "RespectIgnoreDifferences=true"]);
    }
    if !is_there {
        if let Some(foreseen) = job.dry.as_deref_mut() {
            foreseen.unjudged(
                &object,
                &format!("namespace {plane} does not exist yet; it is made by the same run"),
            );
        }
        return Ok(json!({"applicationName": name, "applicationNamespace": plane}));
    }
    make(
        job,
        &collection(APPLICATION, &plane),
        object,
        &format!("Application {plane}/{name}"),
    )
    .await?;
    Ok(json!({"applicationName": name, "applicationNamespace": plane}))
}

/// The namespace of Applications is everybody's, so that it is made if it is missing and never taken back. Whether it is there: a dry run
/// makes none.
async fn ensure_namespace(job: &mut Job<'_>, name: &str) -> Result<bool, StepError> {
    let requests = job.requests();
    // Whoever may not look at namespaces may still be allowed to work in one.
    let known = requests.get(&format!("/api/v1/namespaces/{name}")).await;
    if !matches!(known, Ok(None)) {
        return Ok(true);
    }
    if job.mode == Mode::Dry {
        return Ok(false);
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "annotations": {VOYAGE_ANNOTATION: job.voyage.uid}},
    });
    requests.create("/api/v1/namespaces", &object).await?;
    Ok(true)
}
