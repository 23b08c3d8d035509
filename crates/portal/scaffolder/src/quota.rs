//! What a run will take of quotas, weighed before anything is written to Git.
//!
//! Two runs for the last free place must not both be told that there is room: what is weighed is held in the Voyage until the objects
//! exist (then the quota counts them), the run is over without them, or time is up. Looking and holding is one thing under a lock; with
//! several replicas the controller runs on the one that has the lease.

use std::time::Duration;

use fairway_api::fairway::VOYAGE;
use fairway_controller::Requests;
use fairway_kernel_quota::{Amounts, Evaluator, Operation, Quota, Request, check};
use fairway_portal_template::files::Files;
use fairway_portal_template::input;
use fairway_portal_template::template::Step;
use serde_json::{Value, json};

use crate::deployed::{Deployed, MOST, Manifest};
use crate::discovery::Discovery;
use crate::drive::{Job, Mode, StepError, variables_after};
use crate::now;
use crate::who::{collection, is_name};

/// How long a finished run holds what has not appeared.
const HELD: Duration = Duration::from_secs(600);

/// An object that the files declare, with what it is to quotas.
struct Declared {
    namespace: String,
    group: String,
    resource: String,
    path: String,
    object: Value,
}

/// Weighs what the files declare, and holds it. An error names the quota.
pub(crate) async fn reserve(job: &mut Job<'_>, files: &Files, deployed: &Deployed) -> Result<(), StepError> {
    for (application, why) in &deployed.failed {
        let name = name(application).to_owned();
        job.log_once(&format!(
            "what Application {name} makes of the files cannot be said before they are in Git, so that quotas are asked for plain manifests: {why}"
        ));
    }
    let is_known = deployed.is_read && deployed.failed.is_empty();
    let declared = match is_known {
        true => declared(job, deployed.manifests.clone()).await,
        false => declared(job, plain(job, files)).await,
    };
    if declared.is_empty() {
        return Ok(());
    }
    let _one_at_a_time = job.world.holding.lock().await;
    // Each publishing step holds what its own files declare; done again, it holds that once.
    let step = format!("{}/{}", job.voyage.run.steps[job.at].id, job.turn);
    job.voyage
        .reservations
        .retain(|held| held["step"] != step.as_str());
    let (own, requests) = (job.own.clone(), job.requests());
    let mut namespaces: Vec<&str> = declared.iter().map(|it| it.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let mut held = Vec::new();
    for namespace in namespaces {
        let quotas = own
            .list(&format!("/api/v1/namespaces/{namespace}/resourcequotas"))
            .await?;
        if quotas.is_empty() {
            continue;
        }
        let mut quotas: Vec<Quota> = quotas.iter().map(Quota::from_object).collect();
        let mut others = held_by_others(&own, &job.voyage.uid, namespace).await?;
        add_missing(&own, &job.voyage.reservations, namespace, &mut others).await;
        for quota in &mut quotas {
            let counted = others.filtered(|name, _| quota.hard.has(name));
            quota.used.add_all(&counted);
        }
        let mut missing = Vec::new();
        for it in declared.iter().filter(|it| it.namespace == namespace) {
            // What exists is counted already; a second run of the same step does not count itself twice.
            if !matches!(requests.get(&it.path).await, Ok(Some(_))) {
                missing.push(it);
            }
        }
        if let Some(foreseen) = job.dry.as_deref_mut() {
            for quota in &quotas {
                foreseen.quota(namespace, quota, &takes(quota, &missing));
            }
        }
        for it in missing {
            let request = Request {
                operation: Operation::Create,
                group: &it.group,
                resource: &it.resource,
                subresource: "",
                object: &it.object,
                old: None,
                now: &now(),
            };
            let charges = {
                let borrowed: Vec<&Quota> = quotas.iter().collect();
                check(&borrowed, &request)
            };
            let charges = charges.map_err(|why| {
                format!(
                    "there is no room in namespace {namespace} for {} {}: {why}",
                    it.resource,
                    name(&it.object)
                )
            })?;
            for charge in charges {
                if let Some(quota) = quotas.get_mut(charge.index) {
                    quota.used = charge.used;
                }
            }
            if let Some(evaluator) = Evaluator::of(&it.group, &it.resource) {
                let usage = evaluator.usage(&it.object, &now());
                held.push(json!({"step": step, "namespace": namespace, "path": it.path, "amounts": usage.to_value(), "at": now()}));
            }
        }
    }
    if held.is_empty() || job.mode == Mode::Again {
        return Ok(());
    }
    if job.mode == Mode::Real {
        job.log(&format!(
            "there is room in the quotas; {} objects are held",
            held.len()
        ));
    }
    // In a dry run, too, what one step takes is gone for the next.
    job.voyage.reservations.extend(held);
    if job.mode == Mode::Real {
        job.voyage.write(job.own).await.map_err(StepError::Interrupted)?;
    }
    Ok(())
}

/// What objects take of a quota, whether it has that much or not.
fn takes(quota: &Quota, objects: &[&Declared]) -> Amounts {
    let mut sum = Amounts::default();
    for it in objects {
        let evaluator = Evaluator::of(&it.group, &it.resource);
        if let Some(evaluator) = evaluator.filter(|evaluator| evaluator.in_scopes(quota, &it.object)) {
            let usage = evaluator.usage(&it.object, &now());
            sum.add_all(&usage.filtered(|name, _| quota.hard.has(name)));
        }
    }
    sum
}

/// What other runs hold in a namespace that is not there yet.
async fn held_by_others(own: &Requests, uid: &str, namespace: &str) -> Result<Amounts, StepError> {
    let mut sum = Amounts::default();
    for voyage in own.list(&collection(VOYAGE, "")).await? {
        let is_over = match voyage["status"]["phase"].as_str() {
            Some("Failed" | "Cancelled" | "Decommissioned" | "Decommissioning" | "Undoing") => true,
            Some("Succeeded") => is_long_ago(voyage["status"]["endedAt"].as_str().unwrap_or("")),
            _ => false,
        };
        if is_over || voyage["metadata"]["uid"] == uid {
            continue;
        }
        let held = voyage["status"]["reservations"].as_array();
        let held = held.map_or(&[][..], Vec::as_slice);
        add_missing(own, held, namespace, &mut sum).await;
    }
    Ok(sum)
}

/// Adds what one run holds in a namespace and is not there yet.
async fn add_missing(own: &Requests, held: &[Value], namespace: &str, sum: &mut Amounts) {
    // What we may not look at, such as Secrets, comes with the rest of the same run.
    let mut there = Vec::new();
    for one in held {
        let found = own.get(one["path"].as_str().unwrap_or("")).await;
        there.push(found.ok().map(|found| found.is_some()));
    }
    let has_begun = there.contains(&Some(true));
    for (one, there) in held.iter().zip(there) {
        if one["namespace"] == namespace && !there.unwrap_or(has_begun) {
            sum.add_all(&Amounts::read(one, "amounts"));
        }
    }
}

/// Where objects go that name no namespace: to where the next Application of the template syncs them.
fn destination(job: &Job<'_>) -> Option<String> {
    let deploys = |step: &&Step| step.action == "argocd:create-resources";
    let step = job.template.steps.iter().skip(job.at + 1).find(deploys)?;
    let known = variables_after(job.world, job.voyage, job.template, None);
    let found = input::resolve(step.input.get("namespace")?, &known, "namespace").ok()??;
    found.as_str().filter(|it| is_name(it)).map(str::to_owned)
}

fn is_long_ago(time: &str) -> bool {
    let Ok(then) = time.parse::<jiff::Timestamp>() else {
        return true;
    };
    let passed = jiff::Timestamp::now().duration_since(then);
    passed.as_secs() > i64::try_from(HELD.as_secs()).unwrap_or(i64::MAX)
}

/// The objects that files hold as they are. Those that name no namespace go to where the next Application of the template syncs them.
fn plain(job: &Job<'_>, files: &Files) -> Vec<Manifest> {
    let namespace = destination(job).unwrap_or_default();
    let found = objects(files).into_iter().map(|object| Manifest {
        object,
        namespace: namespace.clone(),
    });
    found.collect()
}

/// What of these objects is in a namespace, and the claims that machines bring with them.
async fn declared(job: &Job<'_>, manifests: Vec<Manifest>) -> Vec<Declared> {
    let (mut discovery, requests) = (Discovery::default(), job.requests());
    let mut found = Vec::new();
    for Manifest { object, namespace } in manifests {
        let named = object["metadata"]["namespace"].as_str().unwrap_or(&namespace);
        if !is_name(named) {
            continue;
        }
        let (namespace, name) = (named.to_owned(), name(&object).to_owned());
        // What is not served is not counted; the GitOps engine will say so.
        let Ok(resource) = discovery.of(&requests, &object).await else {
            continue;
        };
        if !resource.namespaced || !is_name(&name) {
            continue;
        }
        for template in object["spec"]["dataVolumeTemplates"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let claim = claim(template);
            let name = claim["metadata"]["name"].as_str().unwrap_or("").to_owned();
            if is_name(&name) {
                found.push(Declared {
                    path: format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"),
                    namespace: namespace.clone(),
                    group: String::new(),
                    resource: "persistentvolumeclaims".to_owned(),
                    object: claim,
                });
            }
        }
        found.push(Declared {
            path: format!("{}/{name}", resource.collection(&namespace)),
            namespace,
            group: resource.group,
            resource: resource.plural,
            object,
        });
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// Every object in YAML files that can be read as such.
pub(crate) fn objects(files: &Files) -> Vec<Value> {
    let is_yaml = |path: &str| path.ends_with(".yaml") || path.ends_with(".yml");
    let texts = files
        .iter()
        .filter(|(path, _)| is_yaml(path))
        .filter_map(|(_, file)| file.text());
    texts
        .filter_map(|text| fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default()).ok())
        .flatten()
        .filter(|object| object["apiVersion"].is_string() && object["kind"].is_string())
        .take(MOST)
        .collect()
}

/// The claim that a template of a disk becomes.
fn claim(template: &Value) -> Value {
    let spec = &template["spec"];
    let storage = match &spec["storage"] {
        Value::Null => &spec["pvc"],
        storage => storage,
    };
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": template["metadata"]["name"]},
        "spec": {"resources": storage["resources"], "storageClassName": storage["storageClassName"]},
    })
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}
