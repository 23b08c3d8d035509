//! Descriptions of types and fields, out of the `k8s-openapi` crate.
//!
//! The crate's sources hold the JSON schema of each type with its descriptions as string literals, one per line, as its
//! generator wrote them; they are read as text, so that nothing has to be compiled. The crate has one generic type for
//! all lists where Kubernetes has one per kind: their descriptions come from Kubernetes' own documents, and so does
//! the end of a description that explains enumerated values.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::Documents;
use super::enums::Enums;
use super::types::Schemas;
use crate::upstream;

/// Descriptions by type and field; the type's own is under the empty field.
type Texts = BTreeMap<(String, String), String>;

/// The descriptions of all types, as the text that the schema crate reads.
pub(crate) fn read(
    k8s_openapi: &Path,
    documents: &Documents,
    schemas: &Schemas<'_>,
    enums: &Enums,
) -> Result<String> {
    let mut known = Texts::new();
    read_directory(
        &k8s_openapi.join("src").join(upstream::K8S_OPENAPI_MODULE),
        &mut known,
    )?;
    if known.is_empty() {
        bail!(
            "{} has no descriptions; has its layout changed?",
            k8s_openapi.display()
        );
    }
    let mut out = String::new();
    for (name, schema) in schemas {
        let _ = writeln!(out, "{name}");
        let own = schema.get("description").and_then(|d| d.as_str());
        write_text(
            &mut out,
            "",
            known
                .get(&((*name).to_owned(), String::new()))
                .map(String::as_str)
                .or(own),
        );
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let key = ((*name).to_owned(), field.clone());
            let own = property.get("description").and_then(|d| d.as_str());
            let Some(text) = known.get(&key).map(String::as_str).or(own) else {
                continue;
            };
            let explanation = enums.of(name, field).map_or("", |e| e.explanation.as_str());
            write_text(&mut out, field, Some(&format!("{text}{explanation}")));
        }
    }
    for (owner, parameters) in query_parameters(documents) {
        let _ = writeln!(out, "{owner}");
        for (name, text) in parameters {
            write_text(&mut out, name, Some(text));
        }
    }
    Ok(out)
}

/// Descriptions of query parameters, which only the documents have: the common ones under `query`, those of a
/// subresource under `query` with its resource and name.
fn query_parameters(documents: &Documents) -> BTreeMap<String, BTreeMap<&str, &str>> {
    let mut found: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    for (path, item) in documents.values().flat_map(|d| d["paths"].as_object()).flatten() {
        let (_, subresource) = path.split_once("/{name}/").unwrap_or_default();
        for (method, operation) in item.as_object().into_iter().flatten() {
            let parameters = if method == "parameters" {
                operation
            } else {
                &operation["parameters"]
            };
            for parameter in parameters
                .as_array()
                .into_iter()
                .flatten()
                .filter(|p| p["in"] == "query")
            {
                let (Some(name), Some(text)) =
                    (parameter["name"].as_str(), parameter["description"].as_str())
                else {
                    continue;
                };
                let own = matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
                    && name != "pretty";
                let resource = path
                    .split("/{name}/")
                    .next()
                    .and_then(|p| p.rsplit('/').next())
                    .unwrap_or_default();
                let owner = match (own, method.as_str(), name) {
                    (true, ..) => format!("query {resource}/{subresource}"),
                    // Apply needs it, other patches do not: the words differ.
                    (false, "patch", "fieldManager") => "query patch".to_owned(),
                    _ => "query".to_owned(),
                };
                found.entry(owner).or_default().insert(name, text);
            }
        }
    }
    found
}

/// One line: a blank, the field (nothing for the type itself), a blank, the text as a JSON string.
fn write_text(out: &mut String, field: &str, text: Option<&str>) {
    if let Some(text) = text {
        let _ = writeln!(out, " {field} {}", serde_json::Value::from(text));
    }
}

fn read_directory(directory: &Path, texts: &mut Texts) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read_directory(&path, texts)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let source = fs::read_to_string(&path)?;
            read_source(&source, texts).with_context(|| format!("reading {}", path.display()))?;
        }
    }
    Ok(())
}

fn read_source(source: &str, texts: &mut Texts) -> Result<()> {
    const TYPE: &str = "            \"description\": ";
    const FIELD: &str = "                \"";
    const PLAIN: &str = "                    \"description\": ";
    const REFERENCE: &str = "                    schema_obj.ensure_object().insert(\"description\".into(), ";
    let Some(at) = source.find("impl crate::schemars::JsonSchema for ") else {
        return Ok(());
    };
    let mut lines = source[at..].lines();
    let name = lines.find_map(|l| l.strip_prefix("        \"")?.strip_suffix("\".into()"));
    let Some(name) = name else { return Ok(()) };
    let mut field = "";
    for line in lines {
        let literal = if let Some(rest) = line.strip_prefix(TYPE) {
            field = "";
            rest.trim_end_matches(',')
        } else if let Some(rest) = line.strip_prefix(PLAIN) {
            rest.trim_end_matches(',')
        } else if let Some(rest) = line.strip_prefix(REFERENCE) {
            rest.trim_end_matches(".into());")
        } else {
            if let Some((word, _)) = line.strip_prefix(FIELD).and_then(|rest| rest.split_once("\": ")) {
                field = word;
            }
            continue;
        };
        let text = string_literal(literal).with_context(|| format!("description of {name}.{field}"))?;
        texts.insert((name.to_owned(), field.to_owned()), text);
    }
    Ok(())
}

/// The value of a Rust string literal, of the plain kind that a generator writes.
fn string_literal(literal: &str) -> Result<String> {
    let inner = literal.strip_prefix('"').and_then(|l| l.strip_suffix('"'));
    let mut chars = inner.context("not a string literal")?.chars();
    let mut text = String::new();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(quote @ ('"' | '\'' | '\\')) => quote,
            Some('u') => {
                let hex: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                u32::from_str_radix(&hex, 16)
                    .ok()
                    .and_then(char::from_u32)
                    .context("bad unicode escape")?
            }
            other => bail!("unknown escape {other:?}"),
        });
    }
    Ok(text)
}

/// Compresses the text for the repository.
pub(crate) fn compress(text: &str) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    Ok(encoder.finish()?)
}

/// The text of a compressed file.
pub(crate) fn decompress(bytes: &[u8]) -> Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(bytes)
        .read_to_string(&mut text)
        .context("decompressing the committed descriptions")?;
    Ok(text)
}
