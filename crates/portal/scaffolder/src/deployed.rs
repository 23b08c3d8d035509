//! What comes of files once they are in Git: the objects that Applications of the same run declare from them, before either is there.
//!
//! Which Applications these are is read from the steps that are still to come, as if the files had been published already. What they make
//! of a directory says the renderer ([`crate::ports::Renderer`]), so that a chart and a kustomization count as what they come to.

use fairway_api::argoproj::APPLICATION;
use fairway_portal_template::expression::Variables;
use fairway_portal_template::files::Files;
use fairway_portal_template::input;
use fairway_portal_template::template::Step;
use fairway_portal_template::turns::turns;
use serde_json::{Value, json};

use crate::actions::{argocd, objects};
use crate::drive::{Job, variables_after};
use crate::ports::Unrendered;

/// The most objects that are looked at.
pub(crate) const MOST: usize = 500;
/// Names of the cluster that an Application is in.
const HERE: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];

/// An object that an Application declares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) object: Value,
    /// Where it goes if it names no namespace.
    pub(crate) namespace: String,
}

/// What Applications make of the files of a repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Deployed {
    pub(crate) manifests: Vec<Manifest>,
    /// Applications of which that cannot be said.
    pub(crate) failed: Vec<(Value, Unrendered)>,
    /// Whether an Application of this run reads the files at all.
    pub(crate) is_read: bool,
}

/// What the Applications of the steps to come make of files that this step publishes at an address. `output` is what the step will give.
pub(crate) async fn of(job: &Job<'_>, files: &Files, url: &str, output: &Value) -> Deployed {
    let mut deployed = Deployed::default();
    let step = &job.template.steps[job.at];
    // A step that is repeated gives lists, and this is the item of this repetition.
    let output = match &step.each {
        None => output.clone(),
        Some(_) => in_lists(output, job.turn),
    };
    let known = variables_after(job.world, job.voyage, job.template, Some((&step.id, &output)));
    for application in applications(&job.template.steps[job.at + 1..], &known) {
        let spec = &application["spec"];
        if !is_same(spec["source"]["repoURL"].as_str().unwrap_or(""), url) {
            continue;
        }
        deployed.is_read = true;
        let destination = &spec["destination"];
        let cluster = destination["server"].as_str().or(destination["name"].as_str());
        if !cluster.is_some_and(|cluster| HERE.contains(&cluster)) {
            let why = Unrendered::Unknown("it deploys to another cluster".to_owned());
            deployed.failed.push((application, why));
            continue;
        }
        let namespace = destination["namespace"].as_str().unwrap_or("").to_owned();
        match job.world.options.renderer.render(files, &application).await {
            Ok(mut objects) => {
                objects.extend(own_namespace(&application, &objects));
                let room = MOST.saturating_sub(deployed.manifests.len());
                let objects = objects.into_iter().take(room);
                deployed.manifests.extend(objects.map(|object| Manifest {
                    object,
                    namespace: namespace.clone(),
                }));
            }
            Err(why) => deployed.failed.push((application, why)),
        }
    }
    deployed
}

/// An output as a repeated step shows it, of which only one repetition is known.
fn in_lists(output: &Value, turn: usize) -> Value {
    let fields = output.as_object().into_iter().flatten();
    let lists = fields.map(|(key, value)| {
        let mut list = vec![Value::Null; turn];
        list.push(value.clone());
        (key.clone(), Value::Array(list))
    });
    Value::Object(lists.collect())
}

/// The Applications that steps will make, as far as that can be known now.
fn applications(steps: &[Step], known: &Variables) -> Vec<Value> {
    let mut found = Vec::new();
    for step in steps {
        let is_argocd = step.action == "argocd:create-resources";
        if !is_argocd && !matches!(step.action.as_str(), "kubernetes:apply" | "crossplane:create") {
            continue;
        }
        let Ok(Some(turns)) = turns(step, known) else {
            continue;
        };
        for turn in turns.into_iter().filter(|turn| turn.is_wanted) {
            let Ok(Some(input)) = input::resolve(&step.input, &turn.variables(known), "input") else {
                continue;
            };
            match is_argocd {
                true => found.extend(argocd::application(&input)),
                false => found.extend(objects::written(&input).into_iter().filter(|object| {
                    object["kind"] == APPLICATION.kind && object["apiVersion"] == APPLICATION.api_version()
                })),
            }
        }
    }
    found
}

/// Whether two addresses mean the same repository: the ending is anybody's choice.
fn is_same(one: &str, other: &str) -> bool {
    fn bare(url: &str) -> &str {
        let url = url.trim_end_matches('/');
        url.strip_suffix(".git").unwrap_or(url)
    }
    !one.is_empty() && bare(one) == bare(other)
}

/// The namespace that a sync makes beside what the files declare, if the Application asks for it.
fn own_namespace(application: &Value, objects: &[Value]) -> Option<Value> {
    let options = application["spec"]["syncPolicy"]["syncOptions"].as_array()?;
    let name = application["spec"]["destination"]["namespace"].as_str()?;
    let is_asked = options.iter().any(|option| option == "CreateNamespace=true");
    let is_declared = |object: &Value| object["kind"] == "Namespace" && object["metadata"]["name"] == name;
    (is_asked && !objects.iter().any(is_declared))
        .then(|| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

#[cfg(test)]
mod tests {
    use fairway_portal_template::template::Template;

    use super::*;

    fn steps(steps: &Value) -> Vec<Step> {
        let template = json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": steps},
        });
        Template::read(&template).unwrap().steps
    }

    #[test]
    fn applications_of_later_steps_are_found() {
        let known = Variables::default()
            .with(
                "parameters",
                &json!({"name": "web", "stages": ["dev", "prod"], "deploy": false}),
            )
            .with(
                "steps",
                &json!({"publish": {"output": {"remoteUrl": "https://git/a/web.git"}}}),
            );
        let deploy = |fields: Value| {
            let mut step = json!({"id": "d", "action": "argocd:create-resources", "input": {
                "appName": "${{ parameters.name }}", "repoUrl": "${{ steps.publish.output.remoteUrl }}", "path": "m", "namespace": "n"}});
            for (key, value) in fields.as_object().unwrap() {
                step[key] = value.clone();
            }
            step
        };
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "own", "namespace": "openshift-gitops"},
            "spec": {"source": {"repoURL": "https://git/a/web", "path": "x"}},
        });
        for (step, expected) in [
            (deploy(json!({})), vec!["web m"]),
            (deploy(json!({"if": "${{ parameters.deploy }}"})), vec![]),
            (
                deploy(json!({"each": "${{ parameters.stages }}", "input": {
                    "appName": "web-${{ each.value }}", "repoUrl": "https://git/a/web", "path": "${{ each.value }}", "namespace": "n"}})),
                vec!["web-dev dev", "web-prod prod"],
            ),
            // What cannot be known yet is not guessed at.
            (
                deploy(
                    json!({"input": {"appName": "x", "repoUrl": "${{ steps.later.output.url }}", "path": "m", "namespace": "n"}}),
                ),
                vec![],
            ),
            (
                json!({"id": "k", "action": "kubernetes:apply", "input": {"object": application}}),
                vec!["own x"],
            ),
            (
                json!({"id": "k", "action": "kubernetes:apply", "input": {"manifest": format!("kind: ConfigMap\n---\n{application}\n")}}),
                vec!["own x"],
            ),
            (
                json!({"id": "l", "action": "debug:log", "input": {"object": application}}),
                vec![],
            ),
        ] {
            let found: Vec<String> = applications(&steps(&json!([step])), &known)
                .iter()
                .map(|it| {
                    let text = |pointer: &str| it.pointer(pointer).unwrap().as_str().unwrap().to_owned();
                    format!("{} {}", text("/metadata/name"), text("/spec/source/path"))
                })
                .collect();
            assert_eq!(found, expected, "{step}");
        }
    }

    #[test]
    fn addresses_of_one_repository_are_the_same() {
        for (one, other, expected) in [
            ("https://git/a/web.git", "https://git/a/web", true),
            ("https://git/a/web/", "https://git/a/web.git", true),
            ("https://git/a/web2", "https://git/a/web", false),
            ("", "", false),
        ] {
            assert_eq!(is_same(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_repeated_step_gives_lists() {
        assert_eq!(
            in_lists(&json!({"url": "u"}), 2),
            json!({"url": [null, null, "u"]})
        );
    }

    #[test]
    fn a_namespace_is_made_where_the_application_says_so() {
        let mut application = json!({"spec": {"destination": {"namespace": "apps"}, "syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}});
        assert_eq!(own_namespace(&application, &[]), Some(namespace.clone()));
        assert_eq!(own_namespace(&application, &[namespace]), None);
        application["spec"]["syncPolicy"]["syncOptions"] = json!(["ServerSideApply=true"]);
        assert_eq!(own_namespace(&application, &[]), None);
    }
}
