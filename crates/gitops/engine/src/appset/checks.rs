//! Which of the Applications that a set yields may be written: those with a name of their own, a project and a destination
//! that exist. The others are left as they are, and the set says why.

use std::collections::{BTreeMap, BTreeSet};

use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_gitops_appset::Cluster;
use fairway_gitops_appset::application::duplicates;
use fairway_gitops_appset::rollout;
use fairway_gitops_appset::status::Reason;
use serde_json::Value;

use super::registry::Prepared;
use crate::application::Application;
use crate::destination::{IN_CLUSTER, IN_CLUSTER_NAME, path_inside};
use crate::settings::Catalog;

/// Whether Applications can go where they want to; the error is a sentence.
pub(crate) fn destination(spec: &Value, clusters: &[Cluster], urls: &[String]) -> Result<(), String> {
    let text = |field: &str| spec["destination"][field].as_str().unwrap_or_default();
    let (name, server) = (text("name"), text("server").trim_end_matches('/'));
    match (name.is_empty(), server.is_empty()) {
        (true, true) => Err("Destination server missing from app spec".to_owned()),
        (false, false) => Err(format!(
            "application destination can't have both name and server defined: {name} {server}"
        )),
        (true, false) => {
            let is_known = server == IN_CLUSTER
                || path_inside(urls, server).is_some()
                || clusters
                    .iter()
                    .any(|it| it.server.trim_end_matches('/') == server);
            match is_known {
                true => Ok(()),
                false => Err(format!(
                    "error getting cluster by server {server:?}: cluster {server:?} not found"
                )),
            }
        }
        (false, true) => {
            let found: Vec<&str> = clusters
                .iter()
                .filter(|it| it.name == name)
                .map(|it| it.server.as_str())
                .collect();
            match found.as_slice() {
                [_] => Ok(()),
                // It is there under its own name whatever its Secret calls it.
                [] if name == IN_CLUSTER_NAME => Ok(()),
                [] => Err(format!("there are no clusters with this name: {name}")),
                several => Err(format!(
                    "there are {} clusters with the same name: [{}]",
                    several.len(),
                    several.join(" ")
                )),
            }
        }
    }
}

/// What is around a set.
pub(crate) struct Surroundings<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) catalog: &'a Catalog,
    pub(crate) clusters: &'a [Cluster],
    pub(crate) urls: &'a [String],
}

/// Sorts out what a set yields.
pub(crate) async fn prepare(
    key: &ObjectKey,
    set: &Value,
    yielded: Vec<Value>,
    around: Surroundings<'_>,
) -> Result<Prepared, Failure> {
    let twice = duplicates(&yielded);
    let mut problems: BTreeMap<String, String> = twice
        .iter()
        .map(|name| {
            let why = format!(
                "ApplicationSet {} contains applications with duplicate name: {name}",
                key.name
            );
            (name.clone(), why)
        })
        .collect();
    let mut projects: BTreeMap<String, bool> = BTreeMap::new();
    let mut prepared = Prepared::default();
    for mut application in yielded {
        let name = application["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if problems.contains_key(&name) {
            continue;
        }
        let project = application["spec"]["project"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let exists = match projects.get(&project) {
            Some(exists) => *exists,
            None => {
                let exists = exists(key, &project, &around).await?;
                projects.insert(project.clone(), exists);
                exists
            }
        };
        if !exists {
            let why = format!("application references project {project} which does not exist");
            problems.insert(name, why);
            continue;
        }
        if let Err(why) = destination(&application["spec"], around.clusters, around.urls) {
            let why = format!("application destination spec is invalid: {why}");
            problems.insert(name, why);
            continue;
        }
        if rollout::is_rolling(&set["spec"]) && rollout::hold(&mut application) {
            prepared.prunes.insert(name);
        }
        prepared.applications.push(application);
    }
    prepared.error = summary(&problems);
    prepared.unsure = problems.into_keys().collect::<BTreeSet<_>>();
    Ok(prepared)
}

/// The last of the problems, and how many more there are, as Argo CD says it: a status has a limit.
fn summary(problems: &BTreeMap<String, String>) -> Option<(Reason, String)> {
    let (_, last) = problems.last_key_value()?;
    let message = match problems.len() {
        1 => last.clone(),
        count => format!("{last} (and {} more)", count - 1),
    };
    Some((Reason::Validation, message))
}

async fn exists(key: &ObjectKey, project: &str, around: &Surroundings<'_>) -> Result<bool, Failure> {
    let mut probe = Application {
        key: key.clone(),
        object: Value::Null,
        spec: Default::default(),
    };
    project.clone_into(&mut probe.spec.project);
    let found = around.catalog.project(around.requests, &probe).await?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn destinations() {
        let cluster = |name: &str, server: &str| Cluster {
            name: name.to_owned(),
            server: server.to_owned(),
            ..Cluster::default()
        };
        let clusters = [
            cluster("in-cluster", IN_CLUSTER),
            cluster("east", "https://east/"),
            cluster("twin", "https://a"),
            cluster("twin", "https://b"),
        ];
        let urls = ["https://here:6443".to_owned()];
        for (to, expected) in [
            (json!({"server": IN_CLUSTER}), None),
            (json!({"name": "in-cluster"}), None),
            (json!({"server": "https://east"}), None),
            (json!({"name": "east"}), None),
            (json!({"server": "https://here:6443/clusters/root:team"}), None),
            (json!({}), Some("Destination server missing from app spec")),
            (
                json!({"name": "a", "server": "https://b"}),
                Some("application destination can't have both name and server defined: a https://b"),
            ),
            (
                json!({"name": "west"}),
                Some("there are no clusters with this name: west"),
            ),
            (
                json!({"name": "twin"}),
                Some("there are 2 clusters with the same name: [https://a https://b]"),
            ),
            (
                json!({"server": "https://west"}),
                Some("error getting cluster by server \"https://west\": cluster \"https://west\" not found"),
            ),
        ] {
            let found = destination(&json!({"destination": to}), &clusters, &urls);
            assert_eq!(found.err().as_deref(), expected, "{to}");
        }
    }

    #[test]
    fn problems_are_summed_up() {
        let problems = |count: usize| -> BTreeMap<String, String> {
            (0..count).map(|n| (n.to_string(), format!("why {n}"))).collect()
        };
        let said = |count: usize| summary(&problems(count)).map(|(_, message)| message);
        assert_eq!(said(0), None);
        assert_eq!(said(1).as_deref(), Some("why 0"));
        assert_eq!(said(3).as_deref(), Some("why 2 (and 2 more)"));
    }
}
