//! From the text of rendered files to single manifests, in the order in which Helm installs them.

use std::ops::{Deref, Range};
use std::sync::Arc;

use fairway_text_gotemplate::formats::yaml_fault;
use fairway_text_yaml as yaml;
use serde_json::{Map, Value as Json};

use crate::chart::scalar_text;
use crate::error::Error;

/// A stretch of what a template printed. Copies, and the manifests of one template, share the text.
#[derive(Clone)]
pub struct Content {
    whole: Arc<String>,
    range: Range<usize>,
}

impl Deref for Content {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole[self.range.clone()]
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        str::fmt(self, f)
    }
}

/// How much of each manifest is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// All of it.
    #[default]
    Whole,
    /// What Helm looks at: for those who want the text. The rest is checked, and not kept.
    Head,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The path of the template that it came from.
    pub source: String,
    /// Its text.
    pub content: Content,
    /// Its kind, or nothing.
    pub kind: String,
    /// What the text says, which Helm has to read anyway; null for a text of comments. If heads are read only, it may
    /// be no more than `apiVersion`, `kind`, `metadata` and the `items` of a list.
    pub object: Json,
}

/// A manifest that is applied at a certain event.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// The path of the template that it came from.
    pub source: String,
    /// Its text.
    pub content: Content,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// When it is applied: `pre-install` and so on.
    pub events: Vec<String>,
    /// Its place among the hooks of an event.
    pub weight: i64,
    /// When it is deleted again.
    pub delete_policies: Vec<String>,
    /// What the text says, as that of a manifest.
    pub object: Json,
}

impl Hook {
    /// Whether it is a test.
    pub fn is_test(&self) -> bool {
        self.events.iter().any(|event| event == "test")
    }
}

const EVENTS: &[&str] = &[
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
];

const ORDER: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Known kinds in their order, then the others by name.
fn rank(kind: &str) -> (usize, &str) {
    match ORDER.iter().position(|known| *known == kind) {
        Some(at) => (at, ""),
        None => (ORDER.len(), kind),
    }
}

/// Where the documents of a text are: parts between lines that begin with `---`.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let is_space = fairway_text_gotemplate::text::is_space;
    let offset = text.len() - text.trim_start_matches(is_space).len();
    let trimmed = text[offset..].trim_end_matches(is_space);
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
    let bytes = trimmed.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&bytes[from..], b"---") {
        let at = from + found;
        from = at + 3;
        // The separator stands at the beginning of the text or of a line.
        if at > 0 && bytes[at - 1] != b'\n' {
            continue;
        }
        let mut end = at;
        while end > start && is_blank(bytes[end - 1]) {
            end -= 1;
        }
        parts.push(offset + start..offset + end.max(start));
        start = at + 3;
        while start < bytes.len() && is_blank(bytes[start]) {
            start += 1;
        }
        from = from.max(start);
    }
    parts.push(offset + start..offset + trimmed.len());
    parts.retain(|part| !part.is_empty());
    parts
}

/// What Helm looks at.
struct Head {
    kind: String,
    name: String,
    annotations: Map<String, Json>,
    object: Json,
}

/// What is left of an object of which only the head is read. The items of a list are objects, too.
const HEAD: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];

fn read_head(text: &str, source: &str, reading: Reading) -> Result<Head, Error> {
    let limits = yaml::Limits {
        bytes: 64 * 1024 * 1024,
        ..yaml::Limits::default()
    };
    let fault = |reason: String| Error::Manifest(format!("YAML parse error on {source}: {reason}"));
    let document = match reading {
        Reading::Whole => yaml::from_str(text, limits),
        Reading::Head => yaml::keys_from_str(text, limits, &HEAD),
    };
    let document =
        document.map_err(|error| fault(format!("error converting YAML to JSON: {}", yaml_fault(&error))))?;
    let unmarshal = |found: &Json, field: &str, wanted: &str| {
        let found = match found {
            Json::Array(_) => "array",
            Json::Object(_) => "object",
            Json::String(_) => "string",
            Json::Bool(_) => "bool",
            _ => "number",
        };
        let place = if field.is_empty() {
            "Go value".to_owned()
        } else {
            format!("Go struct field {field}")
        };
        fault(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into {place} of type {wanted}"
        ))
    };
    let empty = Map::new();
    let object = match &document {
        Json::Object(object) => object,
        Json::Null => &empty,
        other => return Err(unmarshal(other, "", "releaseutil.SimpleHead")),
    };
    let text_field = |object: &Map<String, Json>, key: &str, field: &str| match object.get(key) {
        None => Ok(String::new()),
        Some(value) => scalar_text(value).ok_or_else(|| unmarshal(value, field, "string")),
    };
    text_field(object, "apiVersion", "SimpleHead.apiVersion")?;
    let kind = text_field(object, "kind", "SimpleHead.kind")?;
    let metadata = match object.get("metadata") {
        None | Some(Json::Null) => &empty,
        Some(Json::Object(metadata)) => metadata,
        Some(other) => {
            return Err(unmarshal(
                other,
                "SimpleHead.metadata",
                "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }",
            ));
        }
    };
    let name = text_field(metadata, "name", ".metadata.name")?;
    let annotations = match metadata.get("annotations") {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(annotations)) => {
            let mut texts = Map::new();
            for (key, value) in annotations {
                let text =
                    scalar_text(value).ok_or_else(|| unmarshal(value, ".metadata.annotations", "string"))?;
                texts.insert(key.clone(), Json::String(text));
            }
            texts
        }
        Some(other) => return Err(unmarshal(other, ".metadata.annotations", "map[string]string")),
    };
    Ok(Head {
        kind,
        name,
        annotations,
        object: document,
    })
}

/// The manifests and hooks of rendered files, whose paths are sorted already.
pub(crate) fn sort(
    files: Vec<(String, String)>,
    reading: Reading,
    warnings: &mut Vec<String>,
) -> Result<(Vec<Manifest>, Vec<Hook>), Error> {
    let (mut manifests, mut hooks) = (Vec::new(), Vec::new());
    for (source, text) in files {
        let parts = split(&text);
        let whole = Arc::new(text);
        for range in parts {
            let content = Content {
                whole: whole.clone(),
                range,
            };
            let head = read_head(&content, &source, reading)?;
            let Some(Json::String(events)) = head.annotations.get("helm.sh/hook") else {
                manifests.push(Manifest {
                    source: source.clone(),
                    content,
                    kind: head.kind,
                    object: head.object,
                });
                continue;
            };
            let lower = |text: &str| text.trim().to_lowercase();
            let named: Vec<String> = events
                .split(',')
                .map(|event| match lower(event) {
                    event if event == "test-success" => "test".to_owned(),
                    event => event,
                })
                .collect();
            if named.iter().any(|event| !EVENTS.contains(&event.as_str())) {
                warnings.push(format!("info: skipping unknown hook: {events:?}"));
                continue;
            }
            let annotation = |key: &str| head.annotations.get(key).and_then(Json::as_str);
            hooks.push(Hook {
                source: source.clone(),
                content,
                kind: head.kind,
                name: head.name,
                events: named,
                weight: annotation("helm.sh/hook-weight")
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(0),
                delete_policies: annotation("helm.sh/hook-delete-policy")
                    .map(|text| text.split(',').map(lower).collect())
                    .unwrap_or_default(),
                object: head.object,
            });
        }
    }
    manifests.sort_by(|left, right| rank(&left.kind).cmp(&rank(&right.kind)));
    hooks.sort_by(|left, right| rank(&left.kind).cmp(&rank(&right.kind)));
    Ok((manifests, hooks))
}
