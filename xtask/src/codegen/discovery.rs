//! Groups, versions and resources of the table, out of upstream's recorded discovery documents.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_schema::builtin::table::{Format, GroupRow, Gvk, ResourceRow, SubresourceRow, VersionRow};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Documents, served_by_default};
use crate::upstream;

/// The discovery documents: groups with their versions in order, and the resources of each.
pub(crate) struct Discovery {
    groups: Vec<(String, Vec<(String, Value)>)>,
}

/// Reads the discovery documents of what is served by default.
pub(crate) fn read(kubernetes: &Path) -> Result<Discovery> {
    let directory = kubernetes.join("api/discovery");
    let core = upstream::json(&directory.join("api__v1.json"))?;
    let mut groups = vec![(String::new(), vec![("v1".to_owned(), core)])];
    let list = upstream::json(&directory.join("apis.json"))?;
    for group in list["groups"].as_array().context("apis.json lists groups")? {
        let name = group["name"].as_str().context("a group has a name")?;
        let mut versions = Vec::new();
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["version"].as_str().context("a version has a name")?;
            if served_by_default(version) {
                let file = directory.join(format!("apis__{name}__{version}.json"));
                versions.push((version.to_owned(), upstream::json(&file)?));
            }
        }
        if !versions.is_empty() {
            groups.push((name.to_owned(), versions));
        }
    }
    Ok(Discovery { groups })
}

/// The rows of the table.
pub(crate) fn rows<'a>(discovery: &'a Discovery, documents: &'a Documents) -> Result<Vec<GroupRow<'a>>> {
    let mut groups = Vec::new();
    for (group, versions) in &discovery.groups {
        let mut rows = Vec::new();
        for (version, document) in versions {
            let mut resources = resources(group, version, document)
                .with_context(|| format!("resources of {group}/{version}"))?;
            let openapi = documents
                .get(&(group.clone(), version.clone()))
                .context("no OpenAPI document")?;
            for resource in &mut resources {
                add_from_openapi(group, version, resource, &openapi["paths"]);
            }
            rows.push(VersionRow {
                name: version,
                resources,
            });
        }
        groups.push(GroupRow {
            name: group,
            versions: rows,
        });
    }
    choose_storage(&mut groups)?;
    Ok(groups)
}

fn resources<'a>(group: &'a str, version: &'a str, document: &'a Value) -> Result<Vec<ResourceRow<'a>>> {
    let mut rows: BTreeMap<&str, ResourceRow<'a>> = BTreeMap::new();
    let entries = document["resources"].as_array().context("no resources")?;
    for entry in entries {
        let text = |key: &str| entry[key].as_str();
        let name = text("name").context("a resource has a name")?;
        let kind = text("kind").context("a resource has a kind")?;
        if let Some((parent, sub)) = name.split_once('/') {
            let gvk = Gvk {
                group: text("group").unwrap_or(group),
                version: text("version").unwrap_or(version),
                kind,
            };
            let parent = rows
                .get_mut(parent)
                .context("a subresource follows its resource")?;
            parent.subresources.push(SubresourceRow {
                name: sub,
                gvk,
                verbs: names(&entry["verbs"]),
                query: Vec::new(),
            });
        } else {
            let row = ResourceRow {
                name,
                singular: text("singularName").context("a resource has a singular name")?,
                kind,
                namespaced: entry["namespaced"] == true,
                verbs: names(&entry["verbs"]),
                short_names: names(&entry["shortNames"]),
                categories: names(&entry["categories"]),
                storage_hash: text("storageVersionHash").unwrap_or_default(),
                storage: false,
                returns_deleted: false,
                subresources: Vec::new(),
            };
            rows.insert(name, row);
        }
    }
    Ok(rows.into_values().collect())
}

/// Adds what discovery does not tell but the operations of the OpenAPI document do.
fn add_from_openapi<'a>(group: &str, version: &str, resource: &mut ResourceRow<'a>, paths: &'a Value) {
    let prefix = if group.is_empty() {
        "/api".to_owned()
    } else {
        format!("/apis/{group}")
    };
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let item = format!("{prefix}/{version}{scope}/{}/{{name}}", resource.name);
    let answer = &paths[&item]["delete"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
    let answer = answer.as_str().unwrap_or(".Status");
    resource.returns_deleted = !answer.ends_with(".Status");
    for sub in &mut resource.subresources {
        let parameters = paths[format!("{item}/{}", sub.name)]["parameters"].as_array();
        for parameter in parameters.into_iter().flatten().filter(|p| p["in"] == "query") {
            let name = parameter["name"].as_str().unwrap_or_default();
            let format = match parameter["schema"]["type"].as_str() {
                Some("boolean") => Format::Boolean,
                Some("integer") => Format::Int64,
                _ => Format::String,
            };
            // Those are common to all requests, or to all that write.
            if !matches!(name, "pretty" | "dryRun" | "fieldManager" | "fieldValidation") {
                sub.query.push((name, format));
            }
        }
    }
}

/// Marks the version in which each resource is stored: the one whose hash its discovery document shows. Where upstream
/// still stores a version that is no longer served by default, it is the served one, and only one may be left.
fn choose_storage(groups: &mut [GroupRow<'_>]) -> Result<()> {
    let mut served: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for group in groups.iter_mut() {
        for version in &mut group.versions {
            for resource in version
                .resources
                .iter_mut()
                .filter(|r| !r.storage_hash.is_empty())
            {
                resource.storage =
                    storage_hash(group.name, version.name, resource.kind) == resource.storage_hash;
                let (stored, all) = served.entry(resource.storage_hash).or_default();
                *stored += usize::from(resource.storage);
                *all += 1;
            }
        }
    }
    if let Some((hash, (stored, all))) = served.iter().find(|(_, (s, a))| *s != 1 && (*s, *a) != (0, 1)) {
        bail!("{stored} of {all} served resources are stored with the hash {hash}");
    }
    for group in groups {
        for resource in group.versions.iter_mut().flat_map(|v| &mut v.resources) {
            resource.storage |= served.get(resource.storage_hash) == Some(&(0, 1));
        }
    }
    Ok(())
}

fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    STANDARD.encode(&Sha256::digest(format!("{group}/{version}/{kind}"))[..8])
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
