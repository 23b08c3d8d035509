//! Where the content of a DataVolume comes from.

use serde::Deserialize;
use serde_json::Value;

use crate::names;
use crate::view::{DataVolume, Named};

/// Where content comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing is on the disk.
    Blank,
    /// A file on the web.
    Http(Http),
    /// A disk in a container image.
    Registry(Registry),
    /// Somebody sends it.
    Upload,
    /// Another claim.
    Claim(Named),
    /// A snapshot of a claim.
    Snapshot(Named),
    /// What a DataSource stands for.
    Reference(Named),
}

/// A file on the web.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Http {
    pub(crate) url: String,
    pub(crate) secret_ref: String,
    pub(crate) cert_config_map: String,
    pub(crate) extra_headers: Vec<String>,
    pub(crate) secret_extra_headers: Vec<String>,
    pub(crate) checksum: String,
}

/// A disk in a container image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Registry {
    pub(crate) url: String,
    pub(crate) image_stream: String,
    pub(crate) secret_ref: String,
    pub(crate) cert_config_map: String,
}

/// What kind of work filling is. CDI has words for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Something is fetched, or nothing needs to be.
    Import,
    /// Something is sent.
    Upload,
    /// Something that is here is copied.
    Clone,
    /// A snapshot is copied.
    CloneSnapshot,
}

impl Source {
    /// The kind of work.
    pub(crate) fn work(&self) -> Work {
        match self {
            Self::Blank | Self::Http(_) | Self::Registry(_) => Work::Import,
            Self::Upload => Work::Upload,
            Self::Claim(_) | Self::Reference(_) => Work::Clone,
            Self::Snapshot(_) => Work::CloneSnapshot,
        }
    }

    /// What CDI writes on a claim about it.
    pub(crate) fn annotations(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Blank => vec![(names::IMPORT_SOURCE, "none".to_owned())],
            Self::Http(http) => vec![
                (names::IMPORT_SOURCE, "http".to_owned()),
                (names::IMPORT_ENDPOINT, http.url.clone()),
            ],
            Self::Registry(registry) => vec![
                (names::IMPORT_SOURCE, "registry".to_owned()),
                (names::IMPORT_ENDPOINT, registry.url.clone()),
            ],
            Self::Upload => vec![(names::UPLOAD_TARGET, String::new())],
            Self::Claim(it) => vec![(names::CLONE_REQUEST, format!("{}/{}", it.namespace, it.name))],
            Self::Snapshot(_) | Self::Reference(_) => Vec::new(),
        }
    }
}

/// Reads where a DataVolume's content comes from; else what is wrong, and what to do.
pub(crate) fn of(volume: &DataVolume) -> Result<Source, String> {
    let spec = &volume.spec;
    if spec.content_type == "archive" {
        return Err(
            "contentType archive is not supported: a volume is the disk of a machine; use contentType kubevirt".to_owned(),
        );
    }
    if !spec.checkpoints.is_empty() {
        return Err("imports by checkpoints are not supported; import the disk as a whole".to_owned());
    }
    let namespace = volume.metadata.namespace.as_str();
    if let Some(reference) = &spec.source_ref {
        if reference.kind != "DataSource" {
            return Err(format!(
                "Unsupported sourceRef kind {}, currently only DataSource is supported",
                reference.kind
            ));
        }
        let named = Named {
            namespace: reference.namespace.clone().unwrap_or_default(),
            name: reference.name.clone(),
        };
        return Ok(Source::Reference(named.within(namespace)));
    }
    let Some(source) = spec.source.as_ref().and_then(Value::as_object) else {
        return match populator(volume) {
            Some(Source::Claim(named)) => Ok(Source::Claim(named)),
            Some(other) => Ok(other),
            None => Err("it names no source: set spec.source or spec.sourceRef".to_owned()),
        };
    };
    let mut set = source.iter().filter(|(_, value)| !value.is_null());
    let (Some((kind, value)), None) = (set.next(), set.next()) else {
        return Err("spec.source must name exactly one source".to_owned());
    };
    let unreadable = |error: serde_json::Error| format!("spec.source.{kind} cannot be read: {error}");
    match kind.as_str() {
        "blank" => Ok(Source::Blank),
        "upload" => Ok(Source::Upload),
        "http" => {
            let mut http = Http::deserialize(value).map_err(unreadable)?;
            // The field came to CDI after the version whose schema this is; the annotation is what it writes for it.
            if http.checksum.is_empty() {
                let annotation = volume.metadata.annotation(names::IMPORT_CHECKSUM);
                http.checksum = annotation.unwrap_or_default().to_owned();
            }
            Ok(Source::Http(http))
        }
        "registry" => {
            let registry = Registry::deserialize(value).map_err(unreadable)?;
            match registry.image_stream.is_empty() {
                true => Ok(Source::Registry(registry)),
                false => {
                    Err("spec.source.registry.imageStream is OpenShift's; name the image by url".to_owned())
                }
            }
        }
        "pvc" => Ok(Source::Claim(
            Named::deserialize(value).map_err(unreadable)?.within(namespace),
        )),
        "snapshot" => Ok(Source::Snapshot(
            Named::deserialize(value).map_err(unreadable)?.within(namespace),
        )),
        "s3" | "gcs" | "imageio" | "vddk" => Err(format!(
            "the source {kind} is not supported; offer the image over http or in a registry, or upload it"
        )),
        other => Err(format!("the source {other} is not known")),
    }
}

/// A source in the way of Kubernetes: the claim itself says from what it is made.
fn populator(volume: &DataVolume) -> Option<Source> {
    let spec = volume.spec.pvc.as_ref().or(volume.spec.storage.as_ref())?;
    let source = ["dataSourceRef", "dataSource"]
        .iter()
        .find_map(|field| spec.get(field))?;
    claimed(source, &volume.metadata.namespace)
}

/// What `dataSource` or `dataSourceRef` of a claim stands for.
pub(crate) fn claimed(source: &Value, namespace: &str) -> Option<Source> {
    let text = |field: &str| source.get(field).and_then(Value::as_str).unwrap_or_default();
    let named = Named {
        namespace: namespace.to_owned(),
        name: text("name").to_owned(),
    };
    match (text("apiGroup"), text("kind")) {
        ("", "PersistentVolumeClaim") => Some(Source::Claim(named)),
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => Some(Source::Snapshot(named)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn volume(spec: &Value) -> DataVolume {
        let object = json!({"metadata": {"name": "d", "namespace": "shop"}, "spec": spec});
        DataVolume::deserialize(object).unwrap()
    }

    fn named(namespace: &str, name: &str) -> Named {
        Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn sources_are_read() {
        for (spec, expected) in [
            (json!({"source": {"blank": {}}}), Source::Blank),
            (json!({"source": {"upload": {}}}), Source::Upload),
            (
                json!({"source": {"pvc": {"name": "a", "namespace": "gold"}}}),
                Source::Claim(named("gold", "a")),
            ),
            (
                json!({"source": {"pvc": {"name": "a"}}}),
                Source::Claim(named("shop", "a")),
            ),
            (
                json!({"sourceRef": {"kind": "DataSource", "name": "tiny"}}),
                Source::Reference(named("shop", "tiny")),
            ),
            (
                json!({"sourceRef": {"kind": "DataSource", "name": "tiny", "namespace": "fairway-images"}, "source": {}}),
                Source::Reference(named("fairway-images", "tiny")),
            ),
            (
                json!({"storage": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}}),
                Source::Claim(named("shop", "a")),
            ),
            (
                json!({"pvc": {"dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}}}),
                Source::Snapshot(named("shop", "s")),
            ),
        ] {
            assert_eq!(of(&volume(&spec)), Ok(expected), "{spec}");
        }
    }

    #[test]
    fn a_checksum_may_be_an_annotation() {
        let mut it = volume(&json!({"source": {"http": {"url": "https://e/d.qcow2"}}}));
        it.metadata
            .annotations
            .insert(names::IMPORT_CHECKSUM.to_owned(), "sha256:00".to_owned());
        assert!(matches!(of(&it), Ok(Source::Http(http)) if http.checksum == "sha256:00"));
    }

    #[test]
    fn what_is_not_supported_says_so() {
        for (spec, words) in [
            (json!({}), "no source"),
            (json!({"source": {}}), "exactly one"),
            (json!({"source": {"blank": {}, "upload": {}}}), "exactly one"),
            (json!({"source": {"vddk": {}}}), "not supported"),
            (json!({"source": {"registry": {"imageStream": "x"}}}), "OpenShift"),
            (json!({"source": {"http": {"url": 7}}}), "cannot be read"),
            (
                json!({"source": {"blank": {}}, "contentType": "archive"}),
                "archive",
            ),
            (
                json!({"sourceRef": {"kind": "Pod", "name": "x"}}),
                "Unsupported sourceRef",
            ),
        ] {
            let why = of(&volume(&spec)).unwrap_err();
            assert!(why.contains(words), "{spec}: {why}");
        }
    }
}
