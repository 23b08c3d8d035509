//! What the files under `crds` say about fields: OpenAPI definitions with a few extensions of kustomize's own.

use serde_json::{Map, Value};

use super::{NameReference, TransformerConfig};
use crate::error::{Error, Result};
use crate::fieldspec::{FieldSpec, merge_one};
use crate::id::Gvk;

const ANNOTATION: &str = "x-kubernetes-annotation";
const LABEL_SELECTOR: &str = "x-kubernetes-label-selector";
const IDENTITY: &str = "x-kubernetes-identity";
const REFERENCE_VERSION: &str = "x-kubernetes-object-ref-api-version";
const REFERENCE_KIND: &str = "x-kubernetes-object-ref-kind";
const REFERENCE_NAME: &str = "x-kubernetes-object-ref-name-key";

/// Deeper than definitions refer to each other. Those that refer to themselves would never end.
const MAX_DEPTH: usize = 20;
/// How many properties are looked at in one file; a few definitions that refer to each other often multiply.
const MAX_PROPERTIES: usize = 100_000;

/// The configuration that a file of definitions means.
pub(crate) fn from_crds(document: &Value) -> Result<TransformerConfig> {
    let mut config = TransformerConfig::default();
    let Value::Object(definitions) = document else {
        return Err(Error::new("expected a map of definitions"));
    };
    let mut walk = Walk {
        definitions,
        properties: 0,
    };
    for name in definitions.keys() {
        let Some(properties) = properties_of(definitions, name) else {
            continue;
        };
        if !["kind", "apiVersion", "metadata"]
            .iter()
            .all(|field| properties.contains_key(*field))
        {
            continue;
        }
        let kind = name.rsplit('.').next().unwrap_or(name);
        walk.definition(&mut config, &Gvk::new("", "", kind), name, &mut Vec::new())?;
    }
    Ok(config)
}

fn properties_of<'v>(definitions: &'v Map<String, Value>, name: &str) -> Option<&'v Map<String, Value>> {
    let definition = definitions.get(name)?;
    let schema = definition.get("Schema").or_else(|| definition.get("schema"))?;
    schema.get("properties")?.as_object()
}

struct Walk<'v> {
    definitions: &'v Map<String, Value>,
    properties: usize,
}

impl Walk<'_> {
    fn definition(
        &mut self,
        config: &mut TransformerConfig,
        gvk: &Gvk,
        name: &str,
        path: &mut Vec<String>,
    ) -> Result<()> {
        let Some(properties) = properties_of(self.definitions, name) else {
            return Ok(());
        };
        if path.len() >= MAX_DEPTH {
            return Err(Error::new(format!(
                "definition '{name}' is nested deeper than {MAX_DEPTH} levels; does it refer to itself?"
            )));
        }
        for (field, property) in properties {
            self.properties += 1;
            if self.properties > MAX_PROPERTIES {
                return Err(Error::new(format!(
                    "definitions have more than {MAX_PROPERTIES} properties"
                )));
            }
            path.push(field.clone());
            let extension = |name: &str| property.get(name).and_then(Value::as_str);
            let spec = FieldSpec::new(gvk.clone(), &path.join("/"), false);
            if extension(ANNOTATION).is_some() {
                merge_one(&mut config.common_annotations, &spec)?;
            }
            if extension(LABEL_SELECTOR).is_some() {
                merge_one(&mut config.common_labels, &spec)?;
            }
            if extension(IDENTITY).is_some() {
                merge_one(&mut config.name_prefix, &spec)?;
            }
            if let (Some(version), Some(kind)) = (extension(REFERENCE_VERSION), extension(REFERENCE_KIND)) {
                let key = extension(REFERENCE_NAME).unwrap_or("name");
                config.add_reference(&NameReference {
                    gvk: Gvk::new("", version, kind),
                    referrers: vec![FieldSpec::new(
                        gvk.clone(),
                        &format!("{}/{key}", spec.path),
                        false,
                    )],
                })?;
            }
            if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
                self.definition(config, gvk, reference, path)?;
            }
            path.pop();
        }
        Ok(())
    }
}
