//! OpenAPI v3 documents, one per group and version, as `kubectl explain` and client-side validation read them; and the
//! v2 document, in `v2`.
//!
//! The documents of the built-in kinds are made on request from the table of facts and the compressed descriptions, and
//! nothing of them is kept: they are asked for rarely, clients cache them by the hash in the index, and they would cost
//! more memory than everything else the schemas need. A custom group's document is made of its CRDs in the same way.

mod crd;
mod descriptions;
mod operations;
mod paths;
mod schemas;
mod v2;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::builtin;
use crate::builtin::table::{GroupRow, Gvk, Kinds, ResourceRow, Table, VersionRow, reference};
use descriptions::{DATA, Descriptions};
use paths::{Resource, Subresource};
use schemas::Schemas;

pub use crd::{CrdKind, v3_crd_document};
pub use v2::{CrdVersion, Form as V2Form, Served, v2_document, v2_hash};

/// Raised when the documents change for another reason than the data or the version of this crate: clients cache them
/// by hash.
const LAYOUT: u64 = 2;

/// A document that the index lists beside the built-in ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Changes whenever the document does.
    pub hash: String,
}

/// The index, served at `/openapi/v3`.
pub fn v3_index(extra: &[IndexEntry]) -> Value {
    let mut entries = Vec::new();
    for (group, versions) in builtin::groups() {
        for version in versions {
            entries.push((path_of(group, version), v3_hash(group, version)));
        }
    }
    entries.extend(
        extra
            .iter()
            .map(|e| (path_of(&e.group, &e.version), e.hash.clone())),
    );
    entries.sort();
    let paths: Map<String, Value> = entries
        .into_iter()
        .map(|(path, hash)| {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// `api/v1` or `apis/apps/v1`: the end of a document's URL.
fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// What the document of a built-in group-version depends on, as a hash. It is known without making the document.
pub fn v3_hash(group: &str, version: &str) -> String {
    content_hash(&[
        built_in_hash().as_bytes(),
        group.as_bytes(),
        b"/",
        version.as_bytes(),
    ])
}

/// What all documents of built-in kinds depend on. It cannot change while the program runs, and is large.
fn built_in_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        content_hash(&[
            builtin::FACTS.as_bytes(),
            DATA,
            env!("CARGO_PKG_VERSION").as_bytes(),
            &LAYOUT.to_le_bytes(),
        ])
    })
}

/// A hash for URLs and ETags; 128 bits of FNV-1a are enough to tell documents of one server apart.
pub fn content_hash(parts: &[&[u8]]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = parts
        .iter()
        .copied()
        .flatten()
        .fold(OFFSET, |h, b| (h ^ u128::from(*b)).wrapping_mul(PRIME));
    format!("{hash:032X}")
}

/// The document of a built-in group-version as JSON, served at `/openapi/v3/apis/apps/v1`; `None` if there is no such.
pub fn v3_document(group: &str, version: &str) -> Option<Vec<u8>> {
    let table = builtin::facts();
    let row = table
        .groups
        .iter()
        .find(|g| g.name == group)
        .and_then(|g| version_of(g, version))?;
    let text = descriptions::text();
    let schemas = Schemas::new(&table, Descriptions::new(&text), group, version);
    let mut writer = Writer::new();
    let mut roots = BTreeSet::new();
    let mut sink = |path: &str, item: Value| writer.entry(path, &item);
    for resource in &row.resources {
        let resource = served(&table, group, version, resource);
        paths::resource(&resource, &schemas, &mut roots, &mut sink);
    }
    paths::discovery(group, version, &mut roots, &mut sink);
    writer.begin_schemas();
    for name in schemas.closure(&roots) {
        if let Some((name, schema)) = schemas.schema(name) {
            writer.entry(name, &schema);
        }
    }
    Some(writer.finish())
}

fn version_of<'t>(group: &'t GroupRow<'static>, version: &str) -> Option<&'t VersionRow<'static>> {
    group.versions.iter().find(|v| v.name == version)
}

/// A row of the table as a served resource.
fn served<'a>(
    table: &Table<'static>,
    group: &'a str,
    version: &'a str,
    row: &'a ResourceRow<'static>,
) -> Resource<'a> {
    let type_of = |gvk: Gvk<'_>| {
        let row = table
            .types
            .iter()
            .find(|t| matches!(t.kinds, Kinds::One(k) if k == gvk));
        row.map(|t| t.name)
    };
    let object = type_of(Gvk {
        group,
        version,
        kind: row.kind,
    })
    .unwrap_or_default();
    let list = format!("{object}List");
    Resource {
        group,
        version,
        name: row.name,
        kind: row.kind,
        namespaced: row.namespaced,
        verbs: &row.verbs,
        list: table.types.iter().any(|t| t.name == list).then_some(list),
        object: object.to_owned(),
        returns_deleted: row.returns_deleted,
        built_in: true,
        subresources: row
            .subresources
            .iter()
            .map(|sub| Subresource {
                name: sub.name,
                gvk: sub.gvk,
                verbs: &sub.verbs,
                object: type_of(sub.gvk).map(str::to_owned),
                query: &sub.query,
            })
            .collect(),
    }
}

/// Writes a document piece by piece, so that it is never in memory twice.
struct Writer {
    out: Vec<u8>,
    first: bool,
}

impl Writer {
    fn new() -> Self {
        let head = br#"{"openapi":"3.0.0","info":{"title":"Kubernetes","version":"unversioned"},"paths":{"#;
        Self {
            out: head.to_vec(),
            first: true,
        }
    }

    fn entry(&mut self, key: &str, value: &Value) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        // Writing a JSON value into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, key);
        self.out.push(b':');
        let _ = serde_json::to_writer(&mut self.out, value);
    }

    fn begin_schemas(&mut self) {
        self.out.extend_from_slice(br#"},"components":{"schemas":{"#);
        self.first = true;
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(br#"},"securitySchemes":"#);
        let _ = serde_json::to_writer(&mut self.out, &security_schemes());
        self.out.extend_from_slice(b"}}");
        self.out
    }
}

fn security_schemes() -> Value {
    json!({"BearerToken": {
        "type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer Token authentication",
    }})
}

/// A reference to a schema by its full name.
fn schema_ref(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Marks a type as needed by a document.
fn need<'a>(roots: &mut BTreeSet<String>, name: &'a str) -> &'a str {
    let short = reference(name);
    if !roots.contains(short) {
        roots.insert(short.to_owned());
    }
    name
}

#[cfg(test)]
mod tests;
