//! Names that change with the content of what they name.

use fairway_text_gotext::json;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Context;
use crate::error::Result;
use crate::node::{is_scalar, text};
use crate::resmap::ResMap;

/// Adds a hash to the names of generated resources that want one.
pub(crate) fn add_hashes(resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
    for resource in resources.list_mut() {
        if !resource.needs_hash {
            continue;
        }
        let hash = hash_of(&resource.value);
        resource.store_previous_id(context.api);
        let name = format!("{}-{hash}", resource.name());
        resource.set_name(&name)?;
    }
    Ok(())
}

/// The hash of what a ConfigMap or Secret is called and holds.
pub(crate) fn hash_of(object: &Value) -> String {
    let kind = object.get("kind").map(text).unwrap_or_default();
    let mut hashed = Map::new();
    let mut put = |name: &str, field: Option<&Value>, optional: bool| {
        let value = match field {
            Some(value @ Value::Object(_)) => value.clone(),
            Some(value) if is_scalar(value) => Value::String(text(value).into_owned()),
            Some(_) => Value::Null,
            None => Value::String(String::new()),
        };
        if !optional || value.is_object() {
            hashed.insert(name.to_owned(), value);
        }
    };
    match kind.as_ref() {
        "ConfigMap" => {
            put("binaryData", object.get("binaryData"), true);
        }
        "Secret" => {
            put("stringData", object.get("stringData"), true);
            put("type", object.get("type"), false);
        }
        _ => return encode(&json::to_string(object)),
    }
    put("data", object.get("data"), false);
    // The original looks for a field called `metadata/name`, of which there is none.
    put("name", object.get("metadata/name"), false);
    hashed.insert("kind".to_owned(), Value::String(kind.into_owned()));
    encode(&json::to_string(&Value::Object(hashed)))
}

/// Ten digits of a hash, without those that make words.
fn encode(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    hex.chars()
        .map(|digit| match digit {
            '0' => 'g',
            '1' => 'h',
            '3' => 'k',
            'a' => 'm',
            'e' => 't',
            other => other,
        })
        .collect()
}
