//! One rule of a role: what it matches, and how it is shown in a refusal.

use fairway_text_gotext::strings::quote_list;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::attributes::{Attributes, ResourceAttributes};

/// A rule of a Role or ClusterRole. Rules only ever add permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// The verbs, or `*`.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub verbs: Vec<String>,
    /// The API groups, or `*`.
    #[serde(
        default,
        deserialize_with = "null_as_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub api_groups: Vec<String>,
    /// `pods`, `pods/log`, `*/scale` or `*`.
    #[serde(
        default,
        deserialize_with = "null_as_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resources: Vec<String>,
    /// The object names that the rule is limited to; empty means every name.
    #[serde(
        default,
        deserialize_with = "null_as_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub resource_names: Vec<String>,
    /// Paths outside the API, with a trailing `*` as wildcard.
    #[serde(rename = "nonResourceURLs", default, deserialize_with = "null_as_empty")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

fn null_as_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn has(set: &[String], wanted: &str) -> bool {
    set.iter().any(|item| item == wanted)
}

impl PolicyRule {
    /// The rules in an object's `rules` field. A rule that does not have the right shape grants nothing: reading it
    /// in part could widen it, for instance by losing its `resourceNames`.
    pub fn list_from(rules: Option<&Value>) -> Vec<Self> {
        let Some(Value::Array(rules)) = rules else {
            return Vec::new();
        };
        rules
            .iter()
            .filter_map(|rule| Self::deserialize(rule).ok())
            .collect()
    }

    /// Whether the rule allows the request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !(has(&self.verbs, "*") || has(&self.verbs, attributes.verb)) {
            return false;
        }
        match &attributes.resource {
            Some(target) => {
                self.group_matches(target.group)
                    && self.resource_matches(target)
                    && self.name_matches(target.name)
            }
            None => self.path_matches(attributes.path),
        }
    }

    fn group_matches(&self, group: &str) -> bool {
        self.api_groups
            .iter()
            .any(|allowed| allowed == "*" || allowed == group)
    }

    fn resource_matches(&self, target: &ResourceAttributes<'_>) -> bool {
        self.resources.iter().any(|allowed| {
            if allowed == "*" {
                return true;
            }
            if target.subresource.is_empty() {
                return allowed == target.resource;
            }
            // Compared in parts: this runs for each rule on each request, and must not allocate.
            match allowed.split_once('/') {
                Some((resource, subresource)) => {
                    subresource == target.subresource && (resource == "*" || resource == target.resource)
                }
                None => false,
            }
        })
    }

    fn name_matches(&self, name: &str) -> bool {
        self.resource_names.is_empty() || has(&self.resource_names, name)
    }

    fn path_matches(&self, path: &str) -> bool {
        self.non_resource_urls
            .iter()
            .any(|allowed| path_covers(allowed, path))
    }

    /// The rule on one line, as refusals show it.
    pub fn compact_string(&self) -> String {
        let mut parts = Vec::new();
        for (label, items) in [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ] {
            if !items.is_empty() {
                parts.push(format!("{label}:{}", quote_list(items)));
            }
        }
        format!("{{{}}}", parts.join(", "))
    }
}

/// Whether a path of a rule, which may end in `*`, covers another path, which may do so too.
pub(crate) fn path_covers(owner: &str, path: &str) -> bool {
    owner == path || owner.ends_with('*') && path.starts_with(owner.trim_end_matches('*'))
}

#[cfg(test)]
mod tests;
