//! An object as the kernel keeps it: bytes that are written once and shared by every reader.
//!
//! The stored form is the JSON of the object *without* `resourceVersion`, because the revision is known only after the
//! store has committed, behind two offsets: where inside `metadata` the field is to be inserted, and where `metadata`
//! ends. So turning a stored value into what clients read is one copy and no parsing, and what metadata-only clients
//! read is a part of it. That copy is made once per write; lists and watches then share it.

use std::sync::OnceLock;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::status::ApiError;

/// An object at one revision.
#[derive(Debug)]
pub struct Object {
    bytes: Bytes,
    /// Where the digits of `resourceVersion` stand.
    version_at: (u32, u32),
    /// Where `metadata` ends.
    metadata_end: u32,
    /// Where the JSON goes on after `kind` and `apiVersion`. Known, not looked for, because a list asks it of every object
    /// and need not fetch their bytes for it.
    untyped_at: u32,
    revision: u64,
    /// Of its key: the same through all revisions of the object.
    identity_hash: u64,
    labels: OnceLock<Labels>,
}

/// Labels, sorted by key.
pub type Labels = Box<[(Box<str>, Box<str>)]>;

/// Length of the two offsets.
const HEADER: usize = 8;
const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];
const PARTIAL: &[u8] = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",";
const METADATA: &[u8] = b"\"metadata\":{";
const BEFORE_VERSION: &[u8] = b"\"resourceVersion\":\"";
const AFTER_VERSION: &[u8] = b"\",";

/// Makes the stored form of an object. It must have a `metadata` with at least one field besides `resourceVersion`.
pub fn encode(object: &Value) -> Result<Vec<u8>, ApiError> {
    let fields = object
        .as_object()
        .ok_or_else(|| ApiError::internal("a stored object must be a map"))?;
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&[0; HEADER]);
    out.push(b'{');
    let mut insert_at = None;
    // Type and metadata first, as upstream writes them; lists rely on it to leave the type out.
    let leading = FIRST.iter().filter_map(|name| fields.get_key_value(*name));
    let others = fields.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    for (i, (name, value)) in leading.chain(others).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_json(&mut out, name)?;
        out.push(b':');
        match value.as_object() {
            Some(metadata) if name == "metadata" => insert_at = Some(write_metadata(&mut out, metadata)?),
            _ => write_json(&mut out, value)?,
        }
    }
    out.push(b'}');
    let (at, end) = insert_at.ok_or_else(|| ApiError::internal("a stored object must have metadata"))?;
    out[..4].copy_from_slice(&at.to_le_bytes());
    out[4..HEADER].copy_from_slice(&end.to_le_bytes());
    Ok(out)
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) -> Result<(u32, u32), ApiError> {
    let place = |out: &Vec<u8>| {
        u32::try_from(out.len() - HEADER).map_err(|_| ApiError::internal("object over 4 GiB"))
    };
    out.push(b'{');
    let at = place(out)?;
    let mut first = true;
    for (name, value) in metadata {
        if name == "resourceVersion" {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        write_json(out, name)?;
        out.push(b':');
        write_json(out, value)?;
    }
    if first {
        return Err(ApiError::internal("a stored object must have a name"));
    }
    out.push(b'}');
    Ok((at, place(out)?))
}

fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), ApiError> {
    serde_json::to_writer(out, value).map_err(ApiError::internal)
}

impl Object {
    /// Reads the stored form and puts the revision in.
    pub fn decode(stored: &[u8], revision: u64) -> Option<Self> {
        let (offset, rest) = stored.split_first_chunk::<4>()?;
        let (end, json) = rest.split_first_chunk::<4>()?;
        let (at, end) = (
            u32::from_le_bytes(*offset) as usize,
            u32::from_le_bytes(*end) as usize,
        );
        if at > end || end > json.len() {
            return None;
        }
        Some(Self::splice(&json[..at], &json[at..end], &json[end..], revision))
    }

    /// Puts the revision between the beginning of the metadata and the rest of it.
    fn splice(before: &[u8], metadata: &[u8], after: &[u8], revision: u64) -> Self {
        let digits = revision.to_string();
        let untyped_at = if before.ends_with(METADATA) {
            position(before.len() - METADATA.len())
        } else {
            1
        };
        let mut out = BytesMut::with_capacity(
            before.len()
                + metadata.len()
                + after.len()
                + BEFORE_VERSION.len()
                + AFTER_VERSION.len()
                + digits.len(),
        );
        out.put_slice(before);
        out.put_slice(BEFORE_VERSION);
        let start = position(out.len());
        out.put_slice(digits.as_bytes());
        let end = position(out.len());
        out.put_slice(AFTER_VERSION);
        out.put_slice(metadata);
        let metadata_end = position(out.len());
        out.put_slice(after);
        Self {
            bytes: out.freeze(),
            version_at: (start, end),
            metadata_end,
            untyped_at,
            revision,
            identity_hash: 0,
            labels: OnceLock::new(),
        }
    }

    /// The same object as it was last, at the revision of its deletion.
    #[must_use]
    pub fn deleted_at(&self, revision: u64) -> Self {
        let before = self.version_at.0 as usize - BEFORE_VERSION.len();
        let after = self.version_at.1 as usize + AFTER_VERSION.len();
        let end = self.metadata_end as usize;
        Self::splice(
            &self.bytes[..before],
            &self.bytes[after..end],
            &self.bytes[end..],
            revision,
        )
        .with_identity(self.identity_hash)
    }

    /// The same object, knowing the hash of its key.
    #[must_use]
    pub fn with_identity(self, identity_hash: u64) -> Self {
        Self {
            identity_hash,
            ..self
        }
    }

    /// The hash of its key; 0 where it is not known.
    pub fn identity_hash(&self) -> u64 {
        self.identity_hash
    }

    /// The JSON that clients read.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The JSON without its opening brace, `kind` and `apiVersion`: what upstream writes for the items of built-in lists.
    pub fn untyped(&self) -> &[u8] {
        self.bytes.get(self.untyped_at as usize..).unwrap_or_default()
    }

    /// `"metadata":{...}`, cut out of the JSON: all that metadata-only clients read.
    pub fn metadata(&self) -> &[u8] {
        self.bytes
            .get(self.untyped_at as usize..self.metadata_end as usize)
            .unwrap_or_default()
    }

    /// The object as metadata-only clients read it.
    pub fn partial_metadata(&self) -> Bytes {
        [PARTIAL, self.metadata(), b"}"].concat().into()
    }

    /// Revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object, parsed. Costs a pass over the bytes; keep the result.
    pub fn value(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.bytes)
            .map_err(|e| ApiError::internal(format!("a stored object cannot be read: {e}")))
    }

    /// Its labels, found on first use.
    pub fn labels(&self) -> &Labels {
        self.labels.get_or_init(|| read_labels(&self.bytes))
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = self.labels();
        labels
            .binary_search_by(|(k, _)| (**k).cmp(key))
            .ok()
            .map(|i| &*labels[i].1)
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn read_labels(json: &[u8]) -> Labels {
    #[derive(Deserialize)]
    struct Meta {
        #[serde(default)]
        labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>>,
    }
    #[derive(Deserialize)]
    struct Labelled {
        metadata: Meta,
    }
    serde_json::from_slice::<Labelled>(json)
        .ok()
        .and_then(|object| object.metadata.labels)
        .map(|labels| labels.into_iter().collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> Vec<u8> {
        encode(&json!({
            "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": "3", "labels": {"b": "2", "a": "1"}},
            "data": {"k": "metadata"},
        }))
        .unwrap()
    }

    #[test]
    fn the_revision_is_put_in_where_it_belongs() {
        let object = Object::decode(&stored(), 42).unwrap();
        assert_eq!(
            object.value().unwrap(),
            json!({
                "kind": "ConfigMap",
                "metadata": {"resourceVersion": "42", "name": "a", "labels": {"b": "2", "a": "1"}},
                "data": {"k": "metadata"},
            })
        );
        assert_eq!(object.label("b"), Some("2"));
        assert_eq!(object.label("c"), None);
    }

    #[test]
    fn items_of_lists_can_do_without_their_type() {
        let object = Object::decode(&stored(), 42).unwrap();
        let text = String::from_utf8(object.untyped().to_vec()).unwrap();
        assert!(
            text.starts_with("\"metadata\":{\"resourceVersion\":\"42\",\"name\":\"a\""),
            "{text}"
        );
    }

    #[test]
    fn metadata_is_cut_out_without_parsing() {
        let object = Object::decode(&stored(), 42).unwrap().deleted_at(43);
        let partial: Value = serde_json::from_slice(&object.partial_metadata()).unwrap();
        assert_eq!(
            partial,
            json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": "43", "name": "a", "labels": {"b": "2", "a": "1"}},
            })
        );
    }

    #[test]
    fn a_deleted_object_has_the_revision_of_its_deletion() {
        let object = Object::decode(&stored(), 9).unwrap().deleted_at(1000);
        assert_eq!(object.value().unwrap()["metadata"]["resourceVersion"], "1000");
        assert_eq!(
            object.deleted_at(7).value().unwrap()["metadata"]["resourceVersion"],
            "7"
        );
    }

    #[test]
    fn damaged_values_are_refused_not_sliced() {
        assert!(Object::decode(&[1, 2], 1).is_none());
        assert!(Object::decode(&[255, 0, 0, 0, 255, 0, 0, 0, b'{'], 1).is_none());
        assert!(Object::decode(&[2, 0, 0, 0, 1, 0, 0, 0, b'{', b'}'], 1).is_none());
    }
}
