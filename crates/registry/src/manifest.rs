//! What an image consists of.

use serde_json::Value;

use crate::Digest;

/// The types of manifests that are asked for.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
/// The largest manifest; that of registries.
pub(crate) const MAX_MANIFEST: usize = 4 << 20;
/// More layers has no image.
const MAX_LAYERS: usize = 256;

/// Something that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
    /// What it is.
    pub media_type: String,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// The layers of an image, the lowest first.
    Image(Vec<Descriptor>),
    /// Images for several platforms, of which this one is for the one that was asked for, or for any.
    Index(Digest),
}

impl Manifest {
    /// Reads a manifest; of an index the image for a machine of this architecture, in Go's words. What is in a disk does not depend on
    /// who packed it, so that any other image will do, as long as it is one.
    pub fn parse(text: &[u8], architecture: &str) -> Result<Self, String> {
        let document: Value =
            serde_json::from_slice(text).map_err(|error| format!("the manifest is not JSON: {error}"))?;
        if let Some(layers) = document.get("layers").and_then(Value::as_array) {
            if layers.is_empty() || layers.len() > MAX_LAYERS {
                return Err(format!("the image has {} layers", layers.len()));
            }
            return layers
                .iter()
                .map(descriptor)
                .collect::<Result<_, _>>()
                .map(Self::Image);
        }
        if document["schemaVersion"] == 1 {
            return Err(
                "the image is in Docker's first format, which nobody writes any more; push it again"
                    .to_owned(),
            );
        }
        let Some(manifests) = document.get("manifests").and_then(Value::as_array) else {
            return Err("the manifest is neither of an image nor of several".to_owned());
        };
        let text = |it: &Value, pointer: &str| {
            it.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        // Attestations stand beside images and are none.
        let is_image = |it: &&Value| {
            text(it, "/platform/os") != "unknown" && text(it, "/platform/architecture") != "unknown"
        };
        let images: Vec<&Value> = manifests.iter().filter(is_image).collect();
        let ours = images
            .iter()
            .find(|it| {
                text(it, "/platform/architecture") == architecture && text(it, "/platform/os") == "linux"
            })
            .or_else(|| {
                images
                    .iter()
                    .find(|it| text(it, "/platform/architecture") == architecture)
            })
            .or_else(|| images.first());
        match ours.and_then(|it| Digest::parse(&text(it, "/digest"))) {
            Some(digest) => Ok(Self::Index(digest)),
            None => Err("the index names no image".to_owned()),
        }
    }
}

fn descriptor(value: &Value) -> Result<Descriptor, String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    Ok(Descriptor {
        digest: Digest::parse(text("digest"))
            .ok_or_else(|| format!("{:?} is no digest by SHA-256", text("digest")))?,
        size: value
            .get("size")
            .and_then(Value::as_u64)
            .ok_or("a layer has no size")?,
        media_type: text("mediaType").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    #[test]
    fn the_right_platform_is_chosen() {
        let on = |letter: char, os: &str, architecture: &str| json!({"digest": digest(letter), "platform": {"os": os, "architecture": architecture}});
        for (manifests, expected) in [
            (vec![on('a', "linux", "arm64"), on('b', "linux", "amd64")], 'b'),
            (vec![on('a', "windows", "amd64"), on('b', "linux", "amd64")], 'b'),
            (
                vec![on('a', "unknown", "unknown"), on('b', "linux", "arm64")],
                'b',
            ),
            (vec![json!({"digest": digest('a')})], 'a'),
        ] {
            let index = json!({"manifests": manifests}).to_string();
            let expected = Digest::parse(&digest(expected)).unwrap();
            assert_eq!(
                Manifest::parse(index.as_bytes(), "amd64"),
                Ok(Manifest::Index(expected))
            );
        }
        let image = json!({"layers": [{"digest": digest('c'), "size": 7, "mediaType": "x"}]}).to_string();
        assert!(
            matches!(Manifest::parse(image.as_bytes(), "amd64"), Ok(Manifest::Image(layers)) if layers[0].size == 7)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            json!({}),
            json!({"layers": []}),
            json!({"layers": [{"digest": "sha256:x", "size": 1}]}),
            json!({"layers": [{"digest": digest('a')}]}),
            json!({"manifests": []}),
            json!({"manifests": [{"digest": "../../etc"}]}),
            json!({"schemaVersion": 1}),
            json!([]),
        ] {
            assert!(
                Manifest::parse(text.to_string().as_bytes(), "amd64").is_err(),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn strange_texts_do_no_harm(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Manifest::parse(&text, "amd64");
        }
    }
}
