//! What an APIExport has to say, given what a sync agent publishes.
//!
//! Kinds and claims that somebody else has put there stay. So do kinds whose PublishedResource is gone: taking one away
//! would take all consumers' objects along, and that must not be the price of a deletion by mistake.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::meta::Meta;
use crate::published::PublishedResource;
use crate::schema::split_name;

/// On an APIExport and its schemas: the agent that keeps it.
pub const AGENT_ANNOTATION: &str = "syncagent.kcp.io/agent-name";

/// A kind that is published.
pub struct Offer<'a> {
    /// Its PublishedResource.
    pub published: &'a PublishedResource,
    /// The APIResourceSchema that describes it.
    pub schema: &'a str,
}

/// What is to be done about the export.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing.
    UpToDate,
    /// A merge patch.
    Change(Value),
    /// Another agent keeps it: its name.
    Anothers(String),
}

/// PublishedResources that come too late: another one offers the same kind. The first by name wins.
pub fn superseded<'a>(offers: &[Offer<'a>]) -> BTreeMap<&'a str, &'a str> {
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut late = BTreeMap::new();
    let mut ordered: Vec<&Offer<'a>> = offers.iter().collect();
    ordered.sort_by_key(|it| &it.published.meta.name);
    for offer in ordered {
        let Some((_, resource, group)) = split_name(offer.schema) else {
            continue;
        };
        let name = offer.published.meta.name.as_str();
        match first.get(&(group, resource)) {
            None => {
                first.insert((group, resource), name);
            }
            Some(winner) => {
                late.insert(name, *winner);
            }
        }
    }
    late
}

/// Decides what the export of an agent must say.
pub fn decide(export: &Value, offers: &[Offer<'_>], agent: &str) -> Verdict {
    let meta = Meta::read(export);
    let keeper = meta.annotation(AGENT_ANNOTATION);
    if let Some(other) = keeper.filter(|it| *it != agent && !it.is_empty()) {
        return Verdict::Anothers(other.to_owned());
    }
    let late = superseded(offers);
    let offers: Vec<&Offer<'_>> = offers
        .iter()
        .filter(|it| !late.contains_key(it.published.meta.name.as_str()))
        .collect();
    let list = |field: &str| {
        let found = export
            .pointer(&format!("/spec/{field}"))
            .and_then(Value::as_array);
        found.cloned().unwrap_or_default()
    };
    let (before, claims_before) = (list("resources"), list("permissionClaims"));
    let resources = resources(before.clone(), &offers);
    let claims = claims(claims_before.clone(), &resources, &offers);
    let mut patch = json!({});
    if resources != before {
        patch["spec"]["resources"] = Value::Array(resources);
    }
    if claims != claims_before {
        patch["spec"]["permissionClaims"] = Value::Array(claims);
    }
    if keeper != Some(agent) {
        patch["metadata"]["annotations"] = json!({AGENT_ANNOTATION: agent});
    }
    if patch == json!({}) {
        return Verdict::UpToDate;
    }
    patch["metadata"]["resourceVersion"] = export
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or_default();
    Verdict::Change(patch)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn resources(mut list: Vec<Value>, offers: &[&Offer<'_>]) -> Vec<Value> {
    let named: BTreeMap<(&str, &str), &str> = offers
        .iter()
        .filter_map(|it| split_name(it.schema).map(|(_, name, group)| ((group, name), it.schema)))
        .collect();
    for ((group, name), schema) in named {
        let known = list
            .iter_mut()
            .find(|it| text(it, "group") == group && text(it, "name") == name);
        match known {
            Some(known) => known["schema"] = json!(schema),
            None => {
                list.push(json!({"group": group, "name": name, "schema": schema, "storage": {"crd": {}}}));
            }
        }
    }
    list
}

/// Events always; namespaces, paths and related kinds where somebody needs them.
fn claims(mut list: Vec<Value>, resources: &[Value], offers: &[&Offer<'_>]) -> Vec<Value> {
    let mut wanted: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut want = |group: &str, resource: &str, identity: &str| {
        wanted.insert((group.to_owned(), resource.to_owned(), identity.to_owned()));
    };
    want("", "events", "");
    for offer in offers {
        let published = offer.published;
        if published.filters_namespaces() || !published.related.is_empty() {
            want("", "namespaces", "");
        }
        if published.with_path {
            want("core.kcp.io", "logicalclusters", "");
        }
        for related in &published.related {
            let kind = related.in_workspace();
            let own = resources
                .iter()
                .any(|it| text(it, "group") == kind.group && text(it, "name") == kind.resource);
            if !own {
                want(&kind.group, &kind.resource, &related.identity_hash);
            }
        }
    }
    for (group, resource, identity) in wanted {
        let known = list
            .iter()
            .any(|it| text(it, "group") == group && text(it, "resource") == resource);
        if known {
            continue;
        }
        let mut claim = json!({"group": group, "resource": resource, "verbs": ["*"]});
        if !identity.is_empty() {
            claim["identityHash"] = json!(identity);
        }
        list.push(claim);
    }
    list
}

#[cfg(test)]
mod tests;
