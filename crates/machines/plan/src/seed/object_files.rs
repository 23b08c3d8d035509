//! Content of objects as files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_text_gotext::strings::quoted;
use serde_json::Value;

use super::{Content, SeedError};
use crate::iso::File;
use crate::view::VirtualMachineInstance;

/// The content of a Secret or ConfigMap. On failure the key that is not base64.
pub(super) fn content(object: &Value) -> Result<Content, String> {
    let mut content = Content::new();
    let secret = object["kind"] == "Secret";
    for (field, encoded) in [("data", secret), ("binaryData", true), ("stringData", false)] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            let bytes = if encoded {
                STANDARD.decode(text).map_err(|_| key.clone())?
            } else {
                text.as_bytes().to_vec()
            };
            content.insert(key.clone(), bytes);
        }
    }
    Ok(content)
}

/// Facts about the machine's object, as Kubernetes tells them to pods.
pub(super) fn facts(
    vmi: &VirtualMachineInstance,
    volume: &str,
    fields: &[(String, String)],
) -> Result<Vec<File>, SeedError> {
    let metadata = &vmi.metadata;
    let lines = |map: &std::collections::BTreeMap<String, String>| {
        let lines: Vec<String> = map
            .iter()
            .map(|(key, value)| format!("{key}={}", quoted(value)))
            .collect();
        lines.join("\n")
    };
    let mut files = Vec::new();
    for (path, field) in fields {
        let value = match field.as_str() {
            "metadata.name" => metadata.name.clone(),
            "metadata.namespace" => metadata.namespace.clone(),
            "metadata.uid" => metadata.uid.clone(),
            "metadata.labels" => lines(&metadata.labels),
            "metadata.annotations" => lines(&metadata.annotations),
            other => {
                let of = |prefix: &str| other.strip_prefix(prefix).and_then(|it| it.strip_suffix("']"));
                let label = of("metadata.labels['").map(|key| metadata.labels.get(key));
                let value =
                    label.or_else(|| of("metadata.annotations['").map(|key| metadata.annotations.get(key)));
                let value = value.ok_or_else(|| SeedError::NoField {
                    volume: volume.to_owned(),
                    field: field.clone(),
                })?;
                value.cloned().unwrap_or_default()
            }
        };
        files.push(File::new(path.clone(), value));
    }
    Ok(files)
}
