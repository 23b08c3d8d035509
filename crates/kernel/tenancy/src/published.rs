//! PublishedResources: a kind of a service cluster, offered to workspaces under the name that its provider chose.

use std::collections::BTreeMap;

use fairway_kernel_kinds::selector;
use fairway_kernel_schema::crd::versions;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::meta::{Meta, part};
use crate::names::{annotation, label};
use crate::naming::{
    AGENT_LABEL, CLUSTER_LABEL, NAME_ANNOTATION, NAME_HASH_LABEL, NAMESPACE_ANNOTATION, NAMESPACE_HASH_LABEL,
    Naming, PATH_ANNOTATION, RELATED_LABEL, RELATED_PREFIX,
};
use crate::schema::from_crd;
use crate::template::sha1;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    api_group: String,
    version: String,
    versions: Vec<String>,
    kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Filter {
    namespace: Option<Value>,
    resource: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Projection {
    group: String,
    version: String,
    versions: BTreeMap<String, String>,
    scope: String,
    kind: String,
    plural: String,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
}

/// Where related objects come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The service cluster: copied up to the consumer.
    #[default]
    Service,
    /// The consumer's workspace: copied down.
    Kcp,
}

/// A kind of objects that belong to a published one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Related {
    /// Its name within the publication.
    pub identifier: String,
    /// Where the originals are.
    pub origin: Origin,
    group: String,
    version: String,
    resource: String,
    kind: String,
    /// The identity of the kind in workspaces, if an export brings it.
    pub identity_hash: String,
    /// Whether copies are deleted with the published object.
    pub cleanup: bool,
    projection: Projected,
    /// How to find the objects on both sides.
    pub object: Value,
    /// Rewrite rules.
    pub mutation: Value,
    /// Whether the status is copied, too.
    pub sync_status: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Projected {
    group: String,
    version: String,
    resource: String,
}

/// Group, version and resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupVersionResource {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
}

impl Related {
    /// The kind where the originals are.
    pub fn at_origin(&self) -> GroupVersionResource {
        let built_in = |resource: &str| GroupVersionResource {
            group: String::new(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
        };
        match self.kind.as_str() {
            "ConfigMap" => built_in("configmaps"),
            "Secret" => built_in("secrets"),
            _ => GroupVersionResource {
                group: self.group.clone(),
                version: self.version.clone(),
                resource: self.resource.clone(),
            },
        }
    }

    /// The kind where the copies go.
    pub fn at_destination(&self) -> GroupVersionResource {
        let mut kind = self.at_origin();
        for (field, to) in [
            (&self.projection.group, &mut kind.group),
            (&self.projection.version, &mut kind.version),
            (&self.projection.resource, &mut kind.resource),
        ] {
            if !field.is_empty() {
                to.clone_from(field);
            }
        }
        kind
    }

    /// The kind in the consumer's workspace: what the export has to claim.
    pub fn in_workspace(&self) -> GroupVersionResource {
        match self.origin {
            Origin::Kcp => self.at_origin(),
            Origin::Service => self.at_destination(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Synchronization {
    enabled: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource: Source,
    filter: Filter,
    naming: Naming,
    enable_workspace_paths: bool,
    projection: Projection,
    mutation: Value,
    related: Vec<Related>,
    synchronization: Option<Synchronization>,
}

/// A PublishedResource.
#[derive(Clone, Debug)]
pub struct PublishedResource {
    /// Its metadata.
    pub meta: Meta,
    /// How copies are named.
    pub naming: Naming,
    /// Whether copies say the path of their original's workspace.
    pub with_path: bool,
    /// Rewrite rules.
    pub mutation: Value,
    /// What belongs to a published object.
    pub related: Vec<Related>,
    /// Whether objects are copied at all, or only the kind is offered.
    pub enabled: bool,
    source: Source,
    filter: Filter,
    projection: Projection,
}

impl PublishedResource {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        let spec: Spec = part(object, "spec");
        Self {
            meta: Meta::read(object),
            naming: spec.naming,
            with_path: spec.enable_workspace_paths,
            mutation: spec.mutation,
            related: spec.related,
            enabled: spec.synchronization.is_none_or(|it| it.enabled),
            source: spec.resource,
            filter: spec.filter,
            projection: spec.projection,
        }
    }

    /// Group and kind on the service cluster.
    pub fn source(&self) -> (&str, &str) {
        (&self.source.api_group, &self.source.kind)
    }

    /// The versions that are published; none: all.
    pub fn source_versions(&self) -> Vec<&str> {
        match self.source.version.as_str() {
            "" => self.source.versions.iter().map(String::as_str).collect(),
            one => vec![one],
        }
    }

    /// Whether an object of a workspace is the agent's business.
    pub fn wants(&self, labels: &Value, namespace_labels: &Value) -> bool {
        let passes = |filter: &Option<Value>, labels: &Value| {
            filter
                .as_ref()
                .is_none_or(|filter| selector::is_usable(filter) && selector::matches(filter, labels))
        };
        passes(&self.filter.resource, labels) && passes(&self.filter.namespace, namespace_labels)
    }

    /// The definition as workspaces see it, made from that of the service cluster.
    pub fn project(&self, definition: &Value) -> Result<Value, String> {
        let mut projected = definition.clone();
        let mut kept = self.selected_versions(definition)?;
        if !kept.iter().any(|it| flag(it, "storage")) {
            let latest = kept.iter_mut().rfind(|it| flag(it, "served"));
            let latest =
                latest.ok_or_else(|| "no CRD version selected that is marked as served".to_owned())?;
            latest["storage"] = json!(true);
        }
        self.rename_versions(&mut kept)?;
        let spec = projected
            .get_mut("spec")
            .ok_or_else(|| "CRD contains no spec".to_owned())?;
        spec["versions"] = Value::Array(kept);
        self.rename(spec);
        let name = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
        projected["metadata"] = json!({"name": name});
        if let Some(projected) = projected.as_object_mut() {
            projected.shift_remove("status");
        }
        Ok(projected)
    }

    fn selected_versions(&self, definition: &Value) -> Result<Vec<Value>, String> {
        let source = &self.source;
        if !source.version.is_empty() && !source.versions.is_empty() {
            return Err(
                "cannot configure both .version and .versions as the source of a PublishedResource"
                    .to_owned(),
            );
        }
        let wanted = self.source_versions();
        let all = definition.pointer("/spec/versions").and_then(Value::as_array);
        let kept: Vec<Value> = all
            .into_iter()
            .flatten()
            .filter(|it| wanted.is_empty() || wanted.contains(&text(it, "name")))
            .cloned()
            .collect();
        if kept.is_empty() {
            return Err(match wanted.as_slice() {
                [] => "CRD contains no versions".to_owned(),
                [one] => format!("CRD does not contain version {one}"),
                more => format!("CRD does not contain any of versions [{}]", more.join(" ")),
            });
        }
        Ok(kept)
    }

    fn rename_versions(&self, kept: &mut [Value]) -> Result<(), String> {
        if !self.projection.version.is_empty() {
            let [one] = kept else {
                return Err(format!(
                    "cannot project CRD version to a single version {:?} because it contains {} versions",
                    self.projection.version,
                    kept.len()
                ));
            };
            one["name"] = json!(self.projection.version);
            return Ok(());
        }
        if self.projection.versions.is_empty() {
            return Ok(());
        }
        for version in kept.iter_mut() {
            if let Some(to) = self.projection.versions.get(text(version, "name")) {
                version["name"] = json!(to);
            }
        }
        kept.sort_by(|a, b| versions::compare(text(a, "name"), text(b, "name")));
        if let Some(twice) = kept.windows(2).find(|it| it[0]["name"] == it[1]["name"]) {
            return Err(format!(
                "CRD contains multiple entries for {} after applying mutation rules",
                text(&twice[0], "name")
            ));
        }
        Ok(())
    }

    fn rename(&self, spec: &mut Value) {
        let projection = &self.projection;
        if !projection.group.is_empty() {
            spec["group"] = json!(projection.group);
        }
        if !projection.scope.is_empty() {
            spec["scope"] = json!(projection.scope);
        }
        let names = &mut spec["names"];
        if !projection.kind.is_empty() {
            let singular = projection.kind.to_lowercase();
            names["kind"] = json!(projection.kind);
            names["listKind"] = json!(format!("{}List", projection.kind));
            names["plural"] = json!(format!("{singular}s"));
            names["singular"] = json!(singular);
        }
        if !projection.plural.is_empty() {
            names["plural"] = json!(projection.plural);
        }
        if let Some(categories) = &projection.categories {
            names["categories"] = json!(categories);
        }
        if let Some(short_names) = &projection.short_names {
            names["shortNames"] = json!(short_names);
        }
    }

    /// The APIResourceSchema that offers the kind: `v<hash>.<resource>.<group>`, another one for every change.
    pub fn schema(&self, definition: &Value, agent: &str) -> Result<Value, String> {
        let projected = self.project(definition)?;
        let mut hashed = projected.get("spec").cloned().unwrap_or_default();
        if let Some(hashed) = hashed.as_object_mut() {
            hashed.shift_remove("conversion");
        }
        let hash = sha1(&sorted(&hashed).to_string());
        let mut schema = from_crd(&projected, &format!("v{}", &hash[..8]));
        let generation = definition
            .pointer("/metadata/generation")
            .cloned()
            .unwrap_or(json!(0));
        schema["metadata"]["annotations"] = json!({
            "syncagent.kcp.io/source-generation": generation.to_string(),
            "syncagent.kcp.io/agent-name": agent,
        });
        schema["metadata"]["labels"] = json!({"syncagent.kcp.io/agent-name": agent});
        Ok(schema)
    }
}

/// The same value with sorted keys, so that order does not change its hash.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let ordered: BTreeMap<_, _> = map
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            json!(ordered)
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// An object as it may be copied: without what belongs to the server that it came from, and without an agent's marks.
pub fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ] {
        meta.shift_remove(field);
    }
    let own_annotation = |key: &str| {
        [
            annotation::CLUSTER,
            "kubectl.kubernetes.io/last-applied-configuration",
            NAMESPACE_ANNOTATION,
            NAME_ANNOTATION,
            PATH_ANNOTATION,
        ]
        .contains(&key)
            || key.starts_with(RELATED_PREFIX)
    };
    let own_label = |key: &str| {
        [
            CLUSTER_LABEL,
            NAMESPACE_HASH_LABEL,
            NAME_HASH_LABEL,
            AGENT_LABEL,
            RELATED_LABEL,
        ]
        .contains(&key)
            || key.starts_with(label::CLAIMED_PREFIX)
    };
    for (field, own) in [
        ("annotations", &own_annotation as &dyn Fn(&str) -> bool),
        ("labels", &own_label),
    ] {
        let Some(map) = meta.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        map.retain(|key, _| !own(key));
        if map.is_empty() {
            meta.shift_remove(field);
        }
    }
    object
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field) == Some(&Value::Bool(true))
}

mod objections;
mod openapi;
mod served;

pub use objections::Objection;
pub use openapi::definition_of;
pub use served::Served;

#[cfg(test)]
mod tests;
