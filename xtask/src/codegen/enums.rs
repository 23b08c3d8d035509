//! Allowed values, out of upstream's generated OpenAPI definitions.
//!
//! A server announces the values of enumerated fields, but the documents in upstream's repository are recorded with that
//! feature off, for the sake of client generators. The definitions that both are made from are Go source with one
//! property per line, written by a program and formatted by another, so that reading them by line is safe.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fairway_kernel_schema::builtin::table::reference;

/// What is known about one enumerated field.
pub(crate) struct Enum {
    /// Allowed values.
    pub(crate) values: Vec<String>,
    /// The end of the description, which explains them; empty for lists.
    pub(crate) explanation: String,
}

/// All enumerated fields.
pub(crate) struct Enums(HashMap<(String, String), Enum>);

/// Introduces the explanation of the values in a description.
const EXPLANATION: &str = "\n\nPossible enum values:\n";

impl Enums {
    /// The values of a field of a type.
    pub(crate) fn of(&self, type_name: &str, field: &str) -> Option<&Enum> {
        self.0
            .get(&(reference(type_name).replace('.', "_"), field.to_owned()))
    }
}

/// Reads the definitions.
pub(crate) fn read(file: &Path) -> Result<Enums> {
    let source = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut found = HashMap::new();
    let (mut type_words, mut field, mut explanation) = (String::new(), "", String::new());
    for line in source.lines() {
        if let Some(function) = line.strip_prefix("func schema_") {
            let name = function.split('(').next().unwrap_or_default();
            // schema_k8sio_api_core_v1_Pod -> core_v1_Pod: the words of a reference.
            type_words = name
                .rmatch_indices('_')
                .nth(2)
                .map_or(name, |(i, _)| &name[i + 1..])
                .to_owned();
        } else if let Some(rest) = line.strip_prefix("\t\t\t\t\t\"") {
            if let Some((name, _)) = rest.split_once("\": {") {
                (field, explanation) = (name, String::new());
            }
        } else if let Some(rest) = line.strip_prefix("\t\t\t\t\t\t\tDescription: ") {
            let text: String = serde_json::from_str(rest.trim_end_matches(','))
                .with_context(|| format!("description of {type_words}.{field}"))?;
            explanation = text
                .find(EXPLANATION)
                .map(|at| text[at..].to_owned())
                .unwrap_or_default();
        } else if let Some(rest) = line.trim_start().strip_prefix("Enum:") {
            let list = rest
                .trim_start()
                .trim_start_matches("[]interface{}{")
                .trim_end_matches("},");
            let values: Vec<String> = serde_json::from_str(&format!("[{list}]"))
                .with_context(|| format!("values of {type_words}.{field}"))?;
            let known = Enum {
                values,
                explanation: std::mem::take(&mut explanation),
            };
            found.insert((type_words.clone(), field.to_owned()), known);
        }
    }
    if found.is_empty() {
        bail!(
            "{} has no enumerated fields; has its layout changed?",
            file.display()
        );
    }
    Ok(Enums(found))
}
