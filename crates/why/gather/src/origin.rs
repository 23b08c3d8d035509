//! Where something comes from: its Application, the Repository of that, and the Voyage that made both.

use fairway_api::argoproj::CONTROL_PLANES;
use fairway_gitops_sync::annotation::{self, TRACKING_ID};
use fairway_gitops_sync::tracking::{DEFAULT_LABEL, TrackingId};
use fairway_why_chain::Facts;
use serde_json::Value;

use crate::entry::Entry;
use crate::read::{Reader, items, text};

const ARGO: &str = "argoproj.io/v1alpha1";
const OWN: &str = "fairway.dev/v1alpha1";
/// What a run writes on what it makes: its UID.
const VOYAGE: &str = "fairway.dev/voyage";

/// Finds all three, whichever is known.
pub(crate) async fn find(reader: &Reader, entry: &Entry, facts: &mut Facts) {
    let (voyages, applications, repositories) = tokio::join!(
        reader.list_in("voyages", OWN, ""),
        reader.list_in("applications", ARGO, ""),
        reader.list_in("repositories", OWN, ""),
    );
    let voyages = voyages.unwrap_or_default();
    let applications = match applications {
        Some(all) => all,
        None => in_control_planes(reader).await,
    };
    let repositories = repositories.unwrap_or_default();
    match entry.kind.as_str() {
        "Voyage" => facts.voyage.clone_from(&entry.object),
        "Application" => facts.application.clone_from(&entry.object),
        "Repository" => facts.repository.clone_from(&entry.object),
        _ => {}
    }
    // Downwards from the run.
    if let Some(voyage) = facts.voyage.clone() {
        downwards(reader, &voyage, facts).await;
    }
    // Upwards from the object.
    if facts.application.is_none() && facts.voyage.is_none() {
        // A disk that a machine has made for itself is kept by whoever keeps the machine.
        let mut kept = entry.object.iter().chain(&entry.machine);
        let tracked = kept.find_map(|it| tracked_by(it, &applications));
        let tracked = tracked.or_else(|| applications.iter().find(|it| speaks_of(it, entry)));
        let by_source = || {
            let url = facts
                .repository
                .as_ref()
                .map(|it| text(it, "/status/cloneURL").to_owned())?;
            applications
                .iter()
                .find(|it| urls(it).iter().any(|it| is_same(it, &url)))
        };
        facts.application = tracked.or_else(by_source).cloned();
    }
    if let Some(application) = &facts.application {
        repository_of(
            reader,
            application,
            &repositories,
            &mut facts.repository,
            &mut facts.missing_repository,
        );
    }
    if let Some(application) = &facts.application {
        let space = text(application, "/metadata/namespace");
        let path = format!(
            "/apis/{ARGO}/namespaces/{space}/appprojects/{}",
            text(application, "/spec/project")
        );
        facts.project = reader.get("appprojects", &path).await;
    }
    if facts.voyage.is_none() {
        let made = facts.application.iter().chain(&facts.repository);
        let uid = made
            .map(|it| annotation::get(it, VOYAGE))
            .find(|it| !it.is_empty());
        let by_uid = uid.and_then(|uid| voyages.iter().find(|it| it["metadata"]["uid"] == uid));
        // What is not there may be what a run should have made.
        let is_asked = |it: &&Value| {
            entry.object.is_none() && entry.kind != "Host" && would_make(it, &entry.name, &entry.namespace)
        };
        let by_name = || {
            let all = voyages.iter().filter(is_asked);
            all.max_by_key(|it| text(it, "/metadata/creationTimestamp").to_owned())
        };
        facts.voyage = match (by_uid, &facts.application) {
            (None, None) => by_name(),
            (found, _) => found,
        }
        .cloned();
        if facts.application.is_none()
            && let Some(voyage) = facts.voyage.clone()
        {
            downwards(reader, &voyage, facts).await;
        }
    }
}

/// Whether somebody asked a run for something of this name, as far as the answers tell. One that says into which namespace it goes is
/// not taken for the maker of what is missing in another.
fn would_make(voyage: &Value, name: &str, namespace: &str) -> bool {
    let values = &voyage["spec"]["values"];
    let is_elsewhere = values["namespace"]
        .as_str()
        .is_some_and(|it| !namespace.is_empty() && it != namespace);
    let mut all = values.as_object().into_iter().flatten();
    !is_elsewhere && all.any(|(_, value)| *value == name)
}

async fn in_control_planes(reader: &Reader) -> Vec<Value> {
    let mut all = Vec::new();
    for namespace in CONTROL_PLANES {
        all.extend(
            reader
                .list_in("applications", ARGO, namespace)
                .await
                .unwrap_or_default(),
        );
    }
    all
}

/// What a run made, as it says itself.
async fn downwards(reader: &Reader, voyage: &Value, facts: &mut Facts) {
    let steps = items(voyage, "/status/steps").iter();
    for made in steps
        .flat_map(|it| items(it, "/made"))
        .filter(|it| it["undone"] != true)
    {
        let path = text(made, "/reference/path");
        let kind = path.rsplit('/').nth(1).unwrap_or_default();
        let who = format!("status.steps of Voyage {}", text(voyage, "/metadata/name"));
        let is_over = matches!(text(voyage, "/status/phase"), "Succeeded");
        match kind {
            "applications" if facts.application.is_none() => {
                facts.application = reader.get("applications", path).await;
                if facts.application.is_none() && is_over {
                    let mut parts = path.rsplit('/');
                    let (name, namespace) =
                        (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default());
                    facts.missing_application = Some((format!("{namespace}/{name}"), who));
                }
            }
            "repositories" if facts.repository.is_none() => {
                facts.repository = reader.get("repositories", path).await;
                if facts.repository.is_none() && is_over && !reader.unreadable().contains_key("repositories")
                {
                    facts.missing_repository = path.rsplit('/').next().map(str::to_owned);
                }
            }
            _ => {}
        }
    }
}

/// The Application that an object says it belongs to.
fn tracked_by<'v>(object: &Value, applications: &'v [Value]) -> Option<&'v Value> {
    let id: Option<TrackingId> = annotation::get(object, TRACKING_ID).parse().ok();
    let label = annotation::label(object, DEFAULT_LABEL);
    let named = id.map_or_else(|| label.to_owned(), |it| it.application);
    if named.is_empty() {
        return None;
    }
    applications.iter().find(|it| {
        let (namespace, name) = (text(it, "/metadata/namespace"), text(it, "/metadata/name"));
        name == named || format!("{namespace}_{name}") == named
    })
}

/// Whether an Application has, or tried to make, what was asked about.
fn speaks_of(application: &Value, entry: &Entry) -> bool {
    let resources = items(application, "/status/resources").iter();
    let results = items(application, "/status/operationState/syncResult/resources").iter();
    resources.chain(results).any(|it| {
        it["kind"] == entry.kind.as_str()
            && it["name"] == entry.name.as_str()
            && (entry.namespace.is_empty()
                || entry.object.is_none()
                || it["namespace"] == entry.namespace.as_str())
    })
}

fn urls(application: &Value) -> Vec<&str> {
    let many = items(application, "/spec/sources").iter();
    let one = text(application, "/spec/source/repoURL");
    let many = many.map(|it| text(it, "/repoURL"));
    std::iter::once(one)
        .chain(many)
        .filter(|it| !it.is_empty())
        .collect()
}

fn is_same(one: &str, other: &str) -> bool {
    let plain = |it: &str| it.trim_end_matches('/').trim_end_matches(".git").to_lowercase();
    plain(one) == plain(other)
}

/// The Repository that an Application reads; one that is hosted here and gone is told.
fn repository_of(
    reader: &Reader,
    application: &Value,
    repositories: &[Value],
    found: &mut Option<Value>,
    missing: &mut Option<String>,
) {
    if found.is_some() {
        return;
    }
    let own = urls(application);
    *found = repositories
        .iter()
        .find(|it| own.iter().any(|url| is_same(url, text(it, "/status/cloneURL"))))
        .cloned();
    let host = repositories
        .iter()
        .map(|it| text(it, "/status/cloneURL"))
        .find_map(host_of);
    let is_here = |url: &&&str| host.is_some() && host_of(url) == host;
    if found.is_none()
        && !reader.unreadable().contains_key("repositories")
        && let Some(gone) = own.iter().find(is_here)
    {
        // Repositories of other workspaces cannot be listed from here; the engine says whether it could read it.
        let complaint = items(application, "/status/conditions")
            .iter()
            .any(|it| it["type"] == "ComparisonError");
        if complaint && text(application, "/status/sync/revision").is_empty() {
            *missing = Some((*gone).to_owned());
        }
    }
}

fn host_of(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split('/').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::would_make;

    #[test]
    fn a_run_is_the_maker_of_what_it_was_asked_for() {
        for (values, name, namespace, expected) in [
            (json!({"name": "web"}), "web", "shop", true),
            (json!({"name": "web", "namespace": "shop"}), "web", "shop", true),
            (json!({"name": "web", "namespace": "shop"}), "web", "other", false),
            (json!({"name": "web", "namespace": "shop"}), "web", "", true),
            (json!({"name": "db", "namespace": "shop"}), "web", "shop", false),
            (json!(null), "web", "shop", false),
        ] {
            let voyage = json!({"spec": {"values": values}});
            assert_eq!(
                would_make(&voyage, name, namespace),
                expected,
                "{values} {name} {namespace}"
            );
        }
    }
}
