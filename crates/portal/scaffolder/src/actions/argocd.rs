//! `argocd:create-resources`: an Application for what was published.

use fairway_api::argoproj::{APP_PROJECT, APPLICATION};
use fairway_api::fairway::VOYAGE_ANNOTATION;
use serde_json::{Value, json};

use super::objects::make;
use crate::drive::{Job, Mode, StepError, required, text};
use crate::who::{collection, is_name};

/// Where OpenShift keeps Applications.
const NAMESPACE: &str = "openshift-gitops";
/// The cluster that an Application is in.
const SERVER: &str = "https://kubernetes.default.svc";

/// The Application that an input describes.
pub(crate) fn application(input: &Value) -> Result<Value, String> {
    let text = |key: &str| text(input, key);
    let required = |key: &str| required(input, key);
    let (name, url, path) = (required("appName")?, required("repoUrl")?, required("path")?);
    let target = required("namespace")?;
    let plane = text("argoNamespace").unwrap_or(NAMESPACE);
    if !is_name(&name) || !is_name(plane) {
        return Err(format!("{plane}/{name} cannot be the name of an Application"));
    }
    let mut labels = input.get("labels").cloned().unwrap_or(json!({}));
    if let Some(value) = text("labelValue") {
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
            "project": text("projectName").unwrap_or("default"),
            "source": {"repoURL": url, "path": path, "targetRevision": text("targetRevision").unwrap_or("main")},
            "destination": {"server": SERVER, "namespace": target},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["ServerSideApply=true"]},
        },
    });
    if let Some(ignored) = input.get("ignoreDifferences") {
        object["spec"]["ignoreDifferences"] = ignored.clone();
        // Else a sync would write what the comparison does not mind.
        object["spec"]["syncPolicy"]["syncOptions"] =
            json!(["ServerSideApply=true", "RespectIgnoreDifferences=true"]);
    }
    Ok(object)
}

pub(super) async fn create(job: &mut Job<'_>) -> Result<Value, StepError> {
    let object = application(&job.input)?;
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let (name, plane) = (text("/metadata/name"), text("/metadata/namespace"));
    // Backstage is told of several Argo CDs by name; a workspace has one.
    if let Some(instance) = job.text("argoInstance").map(str::to_owned) {
        job.log(&format!(
            "a workspace has one Argo CD, whatever it is called elsewhere ({instance}); the Application goes to namespace {plane}"
        ));
    }
    ensure_namespace(job, &plane).await?;
    let project = text("/spec/project");
    if project != "default" && is_name(&project) {
        let place = format!("{}/{project}", collection(APP_PROJECT, &plane));
        if job.requests().get(&place).await?.is_none() {
            let object = json!({
                "apiVersion": APP_PROJECT.api_version(), "kind": APP_PROJECT.kind,
                "metadata": {"name": project, "namespace": plane},
                "spec": {
                    "sourceRepos": [object["spec"]["source"]["repoURL"]],
                    "destinations": [{"server": SERVER, "namespace": object["spec"]["destination"]["namespace"]}],
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
    make(
        job,
        &collection(APPLICATION, &plane),
        object,
        &format!("Application {plane}/{name}"),
    )
    .await?;
    Ok(json!({"applicationName": name, "applicationNamespace": plane}))
}

/// The namespace of Applications is everybody's, so that it is made if it is missing and never taken back. A dry run makes none, and what
/// comes into it is judged as if it were there.
async fn ensure_namespace(job: &mut Job<'_>, name: &str) -> Result<(), StepError> {
    let requests = job.requests();
    // Whoever may not look at namespaces may still be allowed to work in one.
    let known = requests.get(&format!("/api/v1/namespaces/{name}")).await;
    if !matches!(known, Ok(None)) {
        return Ok(());
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "annotations": {VOYAGE_ANNOTATION: job.voyage.uid}},
    });
    if job.mode != Mode::Dry {
        requests.create("/api/v1/namespaces", &object).await?;
        return Ok(());
    }
    let is_made = job
        .dry
        .as_deref()
        .is_some_and(|foreseen| foreseen.makes_namespace(name));
    if !is_made {
        let judged = requests.post("/api/v1/namespaces?dryRun=All", &object).await;
        job.foresee(&object, &judged);
        judged?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_what_the_input_says() {
        let bare = json!({"appName": "web", "repoUrl": "https://git/a/web.git", "path": "manifests", "namespace": "apps"});
        let made = application(&bare).unwrap();
        assert_eq!(made["metadata"]["namespace"], "openshift-gitops");
        assert_eq!(
            made["spec"]["source"],
            json!({"repoURL": "https://git/a/web.git", "path": "manifests", "targetRevision": "main"})
        );
        for (field, value, why) in [
            ("appName", json!(""), Some("input.appName is missing")),
            ("path", Value::Null, Some("input.path is missing")),
            ("namespace", json!(7), None),
            (
                "appName",
                json!("../x"),
                Some("openshift-gitops/../x cannot be the name of an Application"),
            ),
            (
                "argoNamespace",
                json!("a/b"),
                Some("a/b/web cannot be the name of an Application"),
            ),
        ] {
            let mut input = bare.clone();
            input[field] = value;
            assert_eq!(application(&input).err().as_deref(), why, "{input}");
        }
    }
}
