//! An object of any kind as JSON, for decisions that read JSON.
//!
//! `DynamicObject` would do, but it takes all metadata apart, `managedFields` included, and whoever wants JSON has to put
//! them together again. At a start every object of a watched kind comes by, so this pays.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::key::CLUSTER_ANNOTATION;

/// An object without `managedFields`.
#[derive(Clone, Debug, Default)]
pub struct Json {
    /// The object.
    pub value: Value,
    /// What a watch needs: name, namespace, UID, version, and which workspace the object says it is in.
    pub metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer
            .deserialize_map(Fields::<Whole>::default())
            .map(Value::Object)?;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let home = value
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(CLUSTER_ANNOTATION))
            .and_then(Value::as_str);
        let metadata = ObjectMeta {
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            annotations: home.map(|home| [(CLUSTER_ANNOTATION.to_owned(), home.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Ok(Self { value, metadata })
    }
}

/// Reads a map, and some of its fields otherwise than the rest.
struct Fields<R>(PhantomData<R>);

impl<R> Default for Fields<R> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// How the value of a field is read; nothing: it is passed over.
trait Read {
    fn read<'de, A: MapAccess<'de>>(field: &str, map: &mut A) -> Result<Option<Value>, A::Error>;
}

/// An object: its metadata are a map of their own.
struct Whole;
/// Metadata, without what nobody here asks for.
struct Part;

impl Read for Whole {
    fn read<'de, A: MapAccess<'de>>(field: &str, map: &mut A) -> Result<Option<Value>, A::Error> {
        if field == "metadata" {
            let metadata = map.next_value_seed(Fields::<Part>::default())?;
            return Ok(Some(Value::Object(metadata)));
        }
        map.next_value().map(Some)
    }
}

impl Read for Part {
    fn read<'de, A: MapAccess<'de>>(field: &str, map: &mut A) -> Result<Option<Value>, A::Error> {
        if field == "managedFields" {
            map.next_value::<IgnoredAny>()?;
            return Ok(None);
        }
        map.next_value().map(Some)
    }
}

impl<'de, R: Read> DeserializeSeed<'de> for Fields<R> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, R: Read> Visitor<'de> for Fields<R> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(field) = map.next_key::<String>()? {
            if let Some(value) = R::read(&field, &mut map)? {
                fields.insert(field, value);
            }
        }
        Ok(fields)
    }
}

impl Resource for Json {
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
    use serde_json::json;

    use super::Json;
    use crate::key::{ObjectKey, Reach};

    #[test]
    fn it_is_the_object_and_knows_where_it_is() {
        let object: Json = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "K", "spec": {"a": 1},
            "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "managedFields": [{"manager": "m"}], "labels": {"l": "1"},
                "annotations": {"kcp.io/cluster": "team", "other": "o"}},
        }))
        .unwrap();
        assert_eq!(object.value["spec"]["a"], 1);
        assert_eq!(object.value["metadata"]["labels"]["l"], "1");
        assert!(object.value["metadata"].get("managedFields").is_none());
        assert_eq!(
            ObjectKey::of(&Reach::Every, &object.metadata).to_string(),
            "team|n/x"
        );
        assert_eq!(object.metadata.resource_version.as_deref(), Some("7"));
        let without: Json = serde_json::from_value(json!({"kind": "K"})).unwrap();
        assert_eq!(without.metadata.name, None);
        assert!(serde_json::from_value::<Json>(json!({"metadata": []})).is_err());
    }
}
