//! An object of which only what a controller keeps is read.
//!
//! At a start every object of a watched kind comes by. Reading all of it to keep three fields costs more than everything
//! else that a controller does with most of them; so the fields are read straight from the text, and the rest is passed
//! over.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};

use crate::key::CLUSTER_ANNOTATION;

/// What is kept of an object.
pub trait Kept: Clone + Debug + Send + Sync + 'static {
    /// The fields that are read.
    type Wire<'a>: Deserialize<'a>;

    /// What a watch needs of its metadata ([`meta`]), and what is kept.
    fn keep(wire: &Self::Wire<'_>) -> (ObjectMeta, Self);
}

/// The metadata that a watch needs: name, namespace, version, and which workspace the object says it is in.
pub fn meta(name: &str, namespace: &str, version: &str, cluster: Option<&str>) -> ObjectMeta {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ObjectMeta {
        name: some(name),
        namespace: some(namespace),
        resource_version: some(version),
        annotations: cluster.map(|id| [(CLUSTER_ANNOTATION.to_owned(), id.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// An object as it is kept.
#[derive(Clone, Debug)]
pub struct Glimpse<V> {
    /// What a watch needs.
    pub metadata: ObjectMeta,
    /// What is kept.
    pub kept: V,
}

impl<'de, V: Kept> Deserialize<'de> for Glimpse<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = V::Wire::deserialize(deserializer)?;
        let (metadata, kept) = V::keep(&wire);
        Ok(Self { metadata, kept })
    }
}

impl<V: Kept> Resource for Glimpse<V> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

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
    use kube::api::ObjectMeta;
    use serde::Deserialize;

    use super::{Glimpse, Kept, meta};
    use crate::key::{ObjectKey, Reach};

    #[derive(Clone, Debug, PartialEq)]
    struct Size(u64);

    #[derive(Deserialize)]
    struct Wire<'a> {
        name: &'a str,
        size: u64,
    }

    impl Kept for Size {
        type Wire<'a> = Wire<'a>;

        fn keep(wire: &Wire<'_>) -> (ObjectMeta, Self) {
            (meta(wire.name, "", "7", Some("team")), Self(wire.size))
        }
    }

    #[test]
    fn only_what_is_kept_is_read() {
        let object: Glimpse<Size> =
            serde_json::from_str(r#"{"name": "a", "size": 3, "rest": [{}]}"#).unwrap();
        assert_eq!(object.kept, Size(3));
        assert_eq!(
            ObjectKey::of(&Reach::Every, &object.metadata).to_string(),
            "team|a"
        );
        assert_eq!(object.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(object.metadata.namespace, None);
    }
}
