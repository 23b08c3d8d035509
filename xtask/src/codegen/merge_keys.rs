//! The lists of built-in kinds that strategic merge patches merge item by item, for the kustomize crate.
//!
//! kustomize has the schema of one old version of Kubernetes built in, with kinds that newer ones no longer serve, so
//! the table is taken from that version and not from the one that Fairway serves. Of the whole schema only the ways to
//! such lists are kept. A line is one of
//!
//! ```text
//! type NAME                        what follows belongs to this type
//! object FIELD NAME                a field of another type, which has such lists in it
//! list FIELD KEY,KEY|- NAME|-      a list, the fields that tell its items apart, the type of its items
//! kind APIVERSION KIND NAME|-      the type of a kind
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::upstream;

/// The version that kustomize 5.8 has built in.
const KUBERNETES: &str = "v1.21.2";
const REFERENCE: &str = "#/definitions/";

/// `cargo xtask codegen merge-keys [--check]`.
pub(super) fn run(check: bool) -> Result<()> {
    let kubernetes = upstream::go_module(&format!("k8s.io/kubernetes@{KUBERNETES}"))?;
    let swagger = upstream::json(&kubernetes.join("api/openapi-spec/swagger.json"))?;
    let definitions = swagger["definitions"]
        .as_object()
        .context("swagger.json has no definitions")?;
    let table = render(definitions);
    let file = upstream::root().join("crates/gitops/kustomize/data/merge_keys.table");
    let lines = table.lines().count();
    if check {
        if fs::read_to_string(&file).unwrap_or_default() != table {
            bail!("the merge keys are out of date: run `cargo xtask codegen merge-keys`");
        }
        println!("up to date: {lines} lines of merge keys");
    } else {
        fs::create_dir_all(file.parent().context("a file has a directory")?)?;
        fs::write(&file, table)?;
        println!("written: {lines} lines of merge keys");
    }
    Ok(())
}

/// A way from a type towards lists that merge.
enum Way<'a> {
    Object(&'a str),
    List {
        keys: Vec<&'a str>,
        items: Option<&'a str>,
    },
}

fn ways<'a>(definition: &'a Value) -> BTreeMap<&'a str, Way<'a>> {
    let mut ways = BTreeMap::new();
    for (field, property) in definition["properties"].as_object().into_iter().flatten() {
        let way = match target(property) {
            Some(name) => Way::Object(name),
            None if property["type"] == "array" => {
                let strategy = property["x-kubernetes-patch-strategy"]
                    .as_str()
                    .unwrap_or_default();
                if !strategy.split(',').any(|part| part == "merge") {
                    continue;
                }
                let several = property["x-kubernetes-list-map-keys"].as_array();
                let one = property["x-kubernetes-patch-merge-key"].as_str();
                Way::List {
                    keys: match several {
                        Some(keys) => keys.iter().filter_map(Value::as_str).collect(),
                        None => one.into_iter().collect(),
                    },
                    items: target(&property["items"]),
                }
            }
            None => continue,
        };
        ways.insert(field.as_str(), way);
    }
    ways
}

fn target(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(REFERENCE)
}

fn render(definitions: &Map<String, Value>) -> String {
    let all: BTreeMap<&str, BTreeMap<&str, Way<'_>>> = definitions
        .iter()
        .map(|(name, definition)| (name.as_str(), ways(definition)))
        .collect();
    // Types with a list in them, then types with such a type in them, until no more are found.
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    loop {
        let more: Vec<&str> = all
            .iter()
            .filter(|(name, ways)| {
                let leads = |way: &Way<'_>| match way {
                    Way::List { .. } => true,
                    Way::Object(target) => kept.contains(target),
                };
                !kept.contains(*name) && ways.values().any(leads)
            })
            .map(|(name, _)| *name)
            .collect();
        if more.is_empty() {
            break;
        }
        kept.extend(more);
    }
    let mut table = format!(
        "# Lists that merge, in Kubernetes {KUBERNETES}. Written by `cargo xtask codegen merge-keys`; do not edit.\n"
    );
    for name in &kept {
        table += &format!("type {name}\n");
        for (field, way) in &all[name] {
            match way {
                Way::Object(target) if kept.contains(target) => {
                    table += &format!("object {field} {target}\n");
                }
                Way::Object(_) => {}
                Way::List { keys, items } => {
                    let keys = match keys.is_empty() {
                        true => "-".to_owned(),
                        false => keys.join(","),
                    };
                    let items = items.filter(|items| kept.contains(items)).unwrap_or("-");
                    table += &format!("list {field} {keys} {items}\n");
                }
            }
        }
    }
    for (name, definition) in definitions {
        for kind in definition["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let part = |key: &str| kind[key].as_str().unwrap_or_default();
            let api_version = match part("group") {
                "" => part("version").to_owned(),
                group => format!("{group}/{}", part("version")),
            };
            let name = if kept.contains(name.as_str()) { name } else { "-" };
            table += &format!("kind {api_version} {} {name}\n", part("kind"));
        }
    }
    table
}
