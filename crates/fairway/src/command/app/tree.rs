//! The live objects of an Application with what they own. The engine knows; where it does not, they are found by owner
//! references, in the namespaces that the Application uses.
//!
//! Then what is in the workspace of the Application is looked at; objects of other clusters are shown without children.

use std::collections::{BTreeSet, HashMap};

use fairway_api::argoproj::APPLICATION;
use fairway_gitops_view::field::{list, text};
use fairway_gitops_view::grown::grown;
use fairway_gitops_view::resource::{Node, ResourceState, states};
use futures::StreamExt as _;
use serde_json::Value;

use super::super::gitops::{Session, path_of};

/// Kinds that are asked for at once.
const AT_ONCE: usize = 8;
/// Owners of owners are followed so far.
const MAX_DEPTH: usize = 16;
/// Kinds that own nothing and of which there are many.
const CHILDLESS: [&str; 2] = ["events", "leases"];

/// A live object, as far as the tree needs it.
struct Live {
    uid: String,
    group: String,
    kind: String,
    namespace: String,
    name: String,
    created: String,
    owners: Vec<String>,
}

pub(super) async fn grow(session: &Session, application: &Value) -> anyhow::Result<Vec<Node>> {
    let known = format!("{}/tree", path_of(APPLICATION, application));
    // One that knows of no children may not have looked: it leaves some Applications alone, and kinds that seldom own anything.
    if let Ok(Some(tree)) = session.requests.get(&known).await {
        let grown = grown(application, &tree);
        if grown.iter().any(|node| !node.children.is_empty()) {
            return Ok(grown);
        }
    }
    let roots = states(application, &[]);
    let namespaces: BTreeSet<&str> = roots
        .iter()
        .map(|it| it.namespace.as_str())
        .filter(|it| !it.is_empty())
        .collect();
    let mut found = Vec::new();
    let here = text(application, "/spec/destination/server") == fairway_gitops_view::cluster::IN_CLUSTER.0
        || text(application, "/spec/destination/name") == fairway_gitops_view::cluster::IN_CLUSTER.1;
    if here {
        for namespace in namespaces {
            found.extend(objects(session, namespace).await?);
        }
    }
    let mut owned: HashMap<&str, Vec<&Live>> = HashMap::new();
    for live in &found {
        for owner in &live.owners {
            owned.entry(owner).or_default().push(live);
        }
    }
    let node = |state: ResourceState| {
        let live = found.iter().find(|it| {
            it.group == state.group
                && it.kind == state.kind
                && it.namespace == state.namespace
                && it.name == state.name
        });
        Node {
            created: live.map(|it| it.created.clone()).unwrap_or_default(),
            children: live.map(|it| children(&owned, &it.uid, 0)).unwrap_or_default(),
            state,
        }
    };
    Ok(roots.into_iter().map(node).collect())
}

fn children(owned: &HashMap<&str, Vec<&Live>>, owner: &str, depth: usize) -> Vec<Node> {
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    let below = owned.get(owner).into_iter().flatten();
    below
        .map(|live| Node {
            state: ResourceState {
                group: live.group.clone(),
                kind: live.kind.clone(),
                namespace: live.namespace.clone(),
                name: live.name.clone(),
                ..ResourceState::default()
            },
            created: live.created.clone(),
            children: children(owned, &live.uid, depth + 1),
        })
        .collect()
}

/// Every object of a namespace. Kinds that one may not list are left out.
async fn objects(session: &Session, namespace: &str) -> anyhow::Result<Vec<Live>> {
    let mut kinds = Vec::new();
    for (group, version) in group_versions(session).await {
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let Ok(Some(document)) = session.requests.get(&root).await else {
            continue;
        };
        for it in list(&document, "/resources") {
            let (name, kind) = (text(it, "/name"), text(it, "/kind"));
            let listable = list(it, "/verbs").iter().any(|verb| verb == "list");
            if listable && it["namespaced"] == true && !name.contains('/') && !CHILDLESS.contains(&name) {
                kinds.push((
                    group.clone(),
                    kind.to_owned(),
                    format!("{root}/namespaces/{namespace}/{name}"),
                ));
            }
        }
    }
    let asked = futures::stream::iter(kinds.into_iter().map(|(group, kind, path)| async move {
        let all = session.requests.list(&path).await.unwrap_or_default();
        let live = |it: Value| Live {
            uid: text(&it, "/metadata/uid").to_owned(),
            group: group.clone(),
            kind: kind.clone(),
            namespace: text(&it, "/metadata/namespace").to_owned(),
            name: text(&it, "/metadata/name").to_owned(),
            created: text(&it, "/metadata/creationTimestamp").to_owned(),
            owners: list(&it, "/metadata/ownerReferences")
                .iter()
                .map(|it| text(it, "/uid").to_owned())
                .collect(),
        };
        all.into_iter().map(live).collect::<Vec<Live>>()
    }));
    Ok(asked
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .flatten()
        .collect())
}

/// Every group in the version that the server prefers.
async fn group_versions(session: &Session) -> Vec<(String, String)> {
    let mut all = vec![(String::new(), "v1".to_owned())];
    if let Ok(Some(groups)) = session.requests.get("/apis").await {
        for it in list(&groups, "/groups") {
            let version = text(it, "/preferredVersion/version");
            all.push((text(it, "/name").to_owned(), version.to_owned()));
        }
    }
    all
}
