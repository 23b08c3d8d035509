//! `cargo xtask codegen`: files that are derived from upstream's and committed.
//!
//! `codegen schema` writes the two data files of the schema crate: the table of facts (text) and the descriptions
//! (compressed). `codegen protobuf` writes the table of messages of the protobuf crate,
//! `codegen merge-keys` that of the kustomize crate, `codegen argoproj` the facts about Argo CD's kinds,
//! `codegen machines` those about the kinds of virtual machines and `codegen gateway` those about gateways. With `--check` nothing is written and a difference is an error.

mod argoproj;
mod crd_facts;
mod descriptions;
mod discovery;
mod enums;
mod gateway;
mod gotypes;
mod machines;
mod merge_keys;
mod protobuf;
mod protofile;
mod types;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fairway_kernel_schema::builtin::table::Table;
use serde_json::Value;

use crate::upstream;
use gotypes::GoTypes;

/// Versions that a server enables by default: stable ones. Since 1.24 new beta APIs are off by default, and 1.36 has no
/// older ones left (upstream: the `...EnabledByDefault` lists of `pkg/controlplane/instance.go`).
fn served_by_default(version: &str) -> bool {
    !version.contains("alpha") && !version.contains("beta")
}

/// OpenAPI documents by group and version.
pub(crate) type Documents = BTreeMap<(String, String), Value>;

/// The OpenAPI documents of the group-versions that are served by default.
pub(crate) fn documents(kubernetes: &Path) -> Result<Documents> {
    let mut found = BTreeMap::new();
    let directory = kubernetes.join("api/openapi-spec/v3");
    for entry in fs::read_dir(&directory).with_context(|| format!("listing {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let Some(stem) = name.strip_suffix("_openapi.json") else {
            continue;
        };
        let group_version = match stem.split("__").collect::<Vec<_>>()[..] {
            ["api", version] => (String::new(), version.to_owned()),
            ["apis", group, version] => (group.to_owned(), version.to_owned()),
            _ => continue,
        };
        if served_by_default(&group_version.1) {
            found.insert(group_version, upstream::json(&path)?);
        }
    }
    Ok(found)
}

/// Writes or checks the data of the schema crate.
pub(crate) fn schema(check: bool) -> Result<()> {
    let kubernetes = upstream::kubernetes()?;
    let documents = documents(&kubernetes)?;
    let enums = enums::read(&kubernetes.join("pkg/generated/openapi/zz_generated.openapi.go"))?;
    let schemas = types::schemas(&documents);
    let discovered = discovery::read(&kubernetes)?;
    let table = Table {
        types: types::rows(&schemas, &enums, &mut GoTypes::default())?,
        groups: discovery::rows(&discovered, &documents)?,
    };

    let body = table.render();
    let facts = format!(
        "# Facts about the built-in kinds of Kubernetes {}. Written by `cargo xtask codegen schema`; do not edit.\n{body}",
        upstream::KUBERNETES
    );
    // What is committed must read back as what was found.
    if Table::parse(&facts)? != table {
        bail!("the table does not survive a round trip through its text");
    }
    let texts = descriptions::read(&upstream::k8s_openapi()?, &documents, &schemas, &enums)?;

    let data = upstream::root().join("crates/kernel/schema/data");
    let summary = format!(
        "{} types, {} groups, facts {} KB, descriptions {} KB",
        table.types.len(),
        table.groups.len(),
        facts.len() / 1024,
        texts.len() / 1024
    );
    let (facts_file, texts_file) = (data.join("builtin.facts"), data.join("descriptions.zlib"));
    if check {
        let committed = fs::read_to_string(&facts_file).context("reading the committed facts")?;
        // Compressors differ between versions; what counts is the text.
        let committed_texts = descriptions::decompress(&fs::read(&texts_file)?)?;
        if committed != facts || committed_texts != texts {
            bail!("the facts about the built-in kinds are out of date: run `cargo xtask codegen schema`");
        }
        println!("up to date: {summary}");
    } else {
        fs::create_dir_all(&data)?;
        fs::write(&facts_file, facts)?;
        let compressed = descriptions::compress(&texts)?;
        fs::write(&texts_file, &compressed)?;
        println!("written: {summary} ({} KB compressed)", compressed.len() / 1024);
    }
    Ok(())
}

/// `cargo xtask codegen schema|protobuf|merge-keys|argoproj|machines|gateway [--check]`.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["schema"] => schema(false),
        ["schema", "--check"] => schema(true),
        ["protobuf"] => protobuf::run(false),
        ["protobuf", "--check"] => protobuf::run(true),
        ["merge-keys"] => merge_keys::run(false),
        ["merge-keys", "--check"] => merge_keys::run(true),
        ["argoproj"] => argoproj::run(false),
        ["argoproj", "--check"] => argoproj::run(true),
        ["machines"] => machines::run(false),
        ["machines", "--check"] => machines::run(true),
        ["gateway"] => gateway::run(false),
        ["gateway", "--check"] => gateway::run(true),
        _ => {
            anyhow::bail!(
                "usage: cargo xtask codegen schema|protobuf|merge-keys|argoproj|machines|gateway [--check]"
            )
        }
    }
}
