//! An object of any kind, known by that part of its metadata which controllers act on.
//!
//! `PartialObjectMeta` would do, but it also reads `managedFields`, labels and annotations, which make up most of an
//! object's metadata. Whoever watches every kind of a server sees every write, so this pays.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};

use crate::key::CLUSTER_ANNOTATION;

/// An object: name, namespace, UID, version, owners, finalizers, deletion, and which workspace it says it is in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Of all fields only those named above are filled.
    pub metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: WireMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    deletion_timestamp: Option<Time>,
    annotations: Option<Home>,
}

/// The one annotation that is read.
#[derive(Deserialize)]
struct Home {
    // The name is that of `CLUSTER_ANNOTATION`.
    #[serde(rename = "kcp.io/cluster")]
    cluster: Option<String>,
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata } = Wire::deserialize(deserializer)?;
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            owner_references: metadata.owner_references,
            finalizers: metadata.finalizers,
            deletion_timestamp: metadata.deletion_timestamp,
            annotations: metadata
                .annotations
                .and_then(|home| home.cluster)
                .map(|cluster| [(CLUSTER_ANNOTATION.to_owned(), cluster)].into()),
            ..ObjectMeta::default()
        };
        Ok(Self { metadata })
    }
}

impl Resource for Metadata {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::api::Api;
    use kube::core::ApiResource;
    use serde_json::json;

    use super::Metadata;
    use crate::fake::Script;

    #[test]
    fn only_what_controllers_act_on_is_read() {
        let object: Metadata = serde_json::from_value(json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
                "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"l": "1"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "x", "blockOwnerDeletion": true}],
                "annotations": {"a": "b", "kcp.io/cluster": "team"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}],
            },
        }))
        .unwrap();
        let meta = object.metadata;
        assert_eq!(
            (meta.name.as_deref(), meta.uid.as_deref()),
            (Some("a"), Some("u"))
        );
        assert_eq!(meta.owner_references.unwrap()[0].block_owner_deletion, Some(true));
        assert!(meta.deletion_timestamp.is_some() && meta.finalizers.is_some());
        assert!(meta.labels.is_none() && meta.managed_fields.is_none());
        assert_eq!(
            meta.annotations.unwrap(),
            [("kcp.io/cluster".to_owned(), "team".to_owned())].into()
        );
        let none: Metadata = serde_json::from_str(r#"{"metadata": {"annotations": null}}"#).unwrap();
        assert!(none.metadata.annotations.is_none());
    }

    #[tokio::test]
    async fn the_server_is_asked_for_metadata() {
        let script = Script::new().expect(
            "GET",
            "/apis/e.x/v1/widgets/a",
            200,
            json!({"metadata": {"name": "a"}}),
        );
        let resource = ApiResource {
            group: "e.x".to_owned(),
            version: "v1".to_owned(),
            api_version: "e.x/v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
        };
        let api: Api<Metadata> = Api::all_with(script.client(), &resource);
        assert_eq!(api.get("a").await.unwrap().metadata.name.as_deref(), Some("a"));
        let accept = &script.finish()[0].accept;
        assert!(
            accept.starts_with("application/json;as=PartialObjectMetadata;"),
            "{accept}"
        );
    }
}
