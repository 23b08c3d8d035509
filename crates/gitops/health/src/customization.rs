//! What users change about kinds in the ConfigMap `argocd-cm`: health scripts, ignored differences, known types.
//!
//! Both forms are read: one document under `resource.customizations`, and a key for each thing and kind,
//! `resource.customizations.<thing>.<group>_<kind>`, which wins.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

const PREFIX: &str = "resource.customizations";

/// Everything that users have changed, by `group/Kind`; `*` is allowed in keys.
#[derive(Debug, Clone, Default)]
pub struct Customizations(BTreeMap<String, Customization>);

/// What was changed about one kind, or about all that match a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Customization {
    /// A Lua script that judges the kind's health.
    #[serde(rename = "health.lua")]
    pub health_lua: String,
    /// Whether the script may use the standard libraries.
    #[serde(rename = "health.lua.useOpenLibs")]
    pub use_open_libs: bool,
    /// Scripts of actions, as they are written.
    pub actions: String,
    /// Differences that do not count.
    #[serde(rename = "ignoreDifferences", deserialize_with = "document")]
    pub ignore_differences: IgnoreDiff,
    /// Changes of live objects that need not be looked at.
    #[serde(rename = "ignoreResourceUpdates", deserialize_with = "document")]
    pub ignore_resource_updates: IgnoreDiff,
    /// Fields whose types are Kubernetes' own.
    #[serde(rename = "knownTypeFields")]
    pub known_type_fields: Vec<KnownTypeField>,
}

/// Differences that do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IgnoreDiff {
    /// RFC 6901 pointers.
    #[serde(rename = "jsonPointers")]
    pub json_pointers: Vec<String>,
    /// jq paths.
    #[serde(rename = "jqPathExpressions")]
    pub jq_path_expressions: Vec<String>,
    /// Whoever owns a field.
    #[serde(rename = "managedFieldsManagers")]
    pub managed_fields_managers: Vec<String>,
}

/// A field of a custom kind whose type is one of Kubernetes' own, such as `core/v1/PodSpec`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct KnownTypeField {
    /// The field, with dots.
    #[serde(default)]
    pub field: String,
    /// Its type.
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// What is wrong in the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomizationError {
    /// A value is no YAML of the right form.
    #[error("reading {key} of argocd-cm: {reason}")]
    Value {
        /// Where.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A key names something that cannot be changed.
    #[error(
        "argocd-cm has the key {0}; known are resource.customizations.(health|useOpenLibs|actions|ignoreDifferences|\
         ignoreResourceUpdates|knownTypeFields).<group>_<kind>"
    )]
    Key(String),
}

impl Customizations {
    /// Reads the data of `argocd-cm`; other keys of it are left alone.
    pub fn read<'a>(data: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, CustomizationError> {
        let entries: Vec<(&str, &str)> = data
            .into_iter()
            .filter(|(key, _)| key.starts_with(PREFIX))
            .collect();
        let mut all = BTreeMap::new();
        if let Some((key, text)) = entries
            .iter()
            .find(|(key, text)| *key == PREFIX && !text.trim().is_empty())
        {
            all = parse::<BTreeMap<String, Customization>>(key, text)?;
        }
        for (key, text) in &entries {
            let Some((thing, kind)) = key[PREFIX.len()..]
                .strip_prefix('.')
                .and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let kind = override_key(kind).ok_or_else(|| CustomizationError::Key((*key).to_owned()))?;
            let entry: &mut Customization = all.entry(kind).or_default();
            match thing {
                "health" => entry.health_lua = (*text).to_owned(),
                "useOpenLibs" => {
                    entry.use_open_libs = go_bool(text).ok_or_else(|| CustomizationError::Value {
                        key: (*key).to_owned(),
                        reason: format!("{text:?} is neither true nor false"),
                    })?;
                }
                "actions" => entry.actions = (*text).to_owned(),
                "ignoreDifferences" => entry.ignore_differences = parse(key, text)?,
                "ignoreResourceUpdates" => entry.ignore_resource_updates = parse(key, text)?,
                "knownTypeFields" => entry.known_type_fields = parse(key, text)?,
                _ => return Err(CustomizationError::Key((*key).to_owned())),
            }
        }
        Ok(Self(all))
    }

    /// What was changed about exactly this key (`group/Kind`, or `Kind` in the core group).
    pub fn get(&self, key: &str) -> Option<&Customization> {
        self.0.get(key)
    }

    /// All, with their keys, which may be patterns.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Customization)> {
        self.0
            .iter()
            .map(|(key, customization)| (key.as_str(), customization))
    }

    /// Everything whose key matches a kind, in the order of the keys.
    pub fn matching(&self, group: &str, kind: &str) -> impl Iterator<Item = &Customization> {
        let key = key_of(group, kind);
        let full = format!("{group}/{kind}");
        self.0
            .iter()
            .filter(move |(pattern, _)| {
                fairway_text_glob::matches(pattern, &key) || fairway_text_glob::matches(pattern, &full)
            })
            .map(|(_, customization)| customization)
    }

    /// The script that judges a kind and whether it may use open libraries: its own, or the first that matches.
    pub fn health_script(&self, group: &str, kind: &str) -> Option<(&str, bool)> {
        let key = key_of(group, kind);
        let has_script = |customization: &&Customization| !customization.health_lua.is_empty();
        let own = self.0.get(&key).filter(has_script);
        let found = own.or_else(|| {
            let matching =
                |(pattern, _): &(&String, &Customization)| fairway_text_glob::matches(pattern, &key);
            self.0
                .iter()
                .filter(matching)
                .map(|(_, customization)| customization)
                .find(has_script)
        });
        found.map(|customization| (customization.health_lua.as_str(), customization.use_open_libs))
    }
}

fn key_of(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{group}/{kind}"),
    }
}

/// `group_kind` as `group/kind`.
fn override_key(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('_').collect();
    match parts.as_slice() {
        ["all"] => Some("*/*".to_owned()),
        [kind] if !kind.is_empty() => Some((*kind).to_owned()),
        [group, kind] => Some(format!("{group}/{kind}")),
        _ => None,
    }
}

/// What Go takes for a truth value.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn parse<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, CustomizationError> {
    let bad = |reason: String| CustomizationError::Value {
        key: key.to_owned(),
        reason,
    };
    let value = fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default())
        .map_err(|error| bad(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| bad(error.to_string()))
}

/// In the one-document form the value is a text that holds a document.
fn document<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IgnoreDiff, D::Error> {
    use serde::de::Error as _;
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(IgnoreDiff::default()),
        Value::String(text) if text.trim().is_empty() => Ok(IgnoreDiff::default()),
        Value::String(text) => parse("ignoreDifferences", &text).map_err(D::Error::custom),
        other => serde_json::from_value(other).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests;
