//! Messages out of upstream's `generated.proto` files, which a generator wrote: one field per line, no nested messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A field as the file has it.
#[derive(Clone, Debug)]
pub(crate) struct ProtoField {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) shape: ProtoShape,
    /// A scalar's word, or the full name of a message, such as `k8s.io.api.core.v1.Pod`.
    pub(crate) ty: String,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtoShape {
    One,
    Repeated,
    Map,
}

/// Messages by full name.
pub(crate) type ProtoMessages = BTreeMap<String, Vec<ProtoField>>;

const SCALARS: [&str; 6] = ["string", "int32", "int64", "double", "bool", "bytes"];

/// Reads all files below a directory.
pub(crate) fn read(directory: &Path, messages: &mut ProtoMessages) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, messages)?;
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            let text = fs::read_to_string(&path)?;
            parse(&text, messages).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

fn parse(text: &str, messages: &mut ProtoMessages) -> Result<()> {
    let mut package = "";
    let mut message: Option<(String, Vec<ProtoField>)> = None;
    let mut in_comment = false;
    for line in text.lines().map(str::trim) {
        if in_comment || line.starts_with("/*") {
            in_comment = !line.ends_with("*/");
        } else if line.is_empty() || line.starts_with("//") {
        } else if let Some(name) = line.strip_prefix("message ").and_then(|l| l.strip_suffix(" {")) {
            if message.is_some() {
                bail!("{name} is a message within a message");
            }
            message = Some((format!("{package}.{name}"), Vec::new()));
        } else if let Some((_, fields)) = message.as_mut().filter(|_| line != "}") {
            fields.push(field(line, package).with_context(|| line.to_owned())?);
        } else if line == "}" {
            messages.extend(message.take());
        } else if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if !["syntax ", "import ", "option "].iter().any(|word| line.starts_with(word)) {
            bail!("not understood: {line}");
        }
    }
    Ok(())
}

/// `optional string name = 1;`, `repeated T name = 2;` or `map<string, T> name = 3;`.
fn field(line: &str, package: &str) -> Result<ProtoField> {
    let (declaration, number) = line
        .strip_suffix(';')
        .and_then(|l| l.split_once(" = "))
        .context("a field has a number")?;
    let (ty, name) = declaration.rsplit_once(' ').context("a field has a type")?;
    let (shape, ty) = if let Some(ty) = ty.strip_prefix("optional ").or_else(|| ty.strip_prefix("required ")) {
        (ProtoShape::One, ty)
    } else if let Some(ty) = ty.strip_prefix("repeated ") {
        (ProtoShape::Repeated, ty)
    } else {
        let value = ty.strip_prefix("map<string, ").and_then(|t| t.strip_suffix('>'));
        (ProtoShape::Map, value.context("neither optional nor repeated nor a map")?)
    };
    let ty = match ty.strip_prefix('.') {
        Some(full) => full.to_owned(),
        None if SCALARS.contains(&ty) => ty.to_owned(),
        None if ty.contains('.') || ty.starts_with(char::is_lowercase) => bail!("unknown type {ty}"),
        None => format!("{package}.{ty}"),
    };
    Ok(ProtoField { number: number.parse().context("the number of a field")?, name: name.to_owned(), shape, ty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_forms_are_read() {
        let text = "/*\nlicence\n*/\nsyntax = \"proto2\";\npackage k8s.io.api.x.v1;\n// A thing.\nmessage T {\n  // +optional\n  \
            optional string name = 1;\n\n  repeated U us = 2;\n  map<string, .k8s.io.y.Q> qs = 13;\n}\n";
        let mut messages = ProtoMessages::new();
        parse(text, &mut messages).unwrap();
        let fields = &messages["k8s.io.api.x.v1.T"];
        let seen: Vec<_> = fields.iter().map(|f| (f.number, f.name.as_str(), f.shape, f.ty.as_str())).collect();
        assert_eq!(
            seen,
            [
                (1, "name", ProtoShape::One, "string"),
                (2, "us", ProtoShape::Repeated, "k8s.io.api.x.v1.U"),
                (13, "qs", ProtoShape::Map, "k8s.io.y.Q"),
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in ["optional uint32 a = 1;", "map<int32, string> a = 1;", "oneof a {", "optional string a = x;"] {
            assert!(parse(&format!("message T {{\n{line}\n}}\n"), &mut ProtoMessages::new()).is_err(), "{line}");
        }
    }
}
