//! The claim of a DataVolume.

use serde_json::{Map, Value, json};

use crate::names;
use crate::view::DataVolume;

use super::source::Source;

/// KubeVirt knows no smaller disks.
const SMALLEST: u64 = 1 << 20;
/// What a volume of a host can be, if nobody says otherwise.
const ACCESS_MODE: &str = "ReadWriteOnce";
const VOLUME_MODE: &str = "Filesystem";

/// How a DataVolume says what it claims.
fn spec(volume: &DataVolume) -> Option<(&Value, bool)> {
    let pvc = volume.spec.pvc.as_ref().map(|spec| (spec, false));
    pvc.or(volume.spec.storage.as_ref().map(|spec| (spec, true)))
}

/// The class that a DataVolume names. An empty name is one, too.
pub(crate) fn class(volume: &DataVolume) -> Option<&str> {
    spec(volume)?.0.get("storageClassName")?.as_str()
}

/// The bytes that a DataVolume asks for.
pub(crate) fn requested(volume: &DataVolume) -> Option<u64> {
    let text = spec(volume)?.0.pointer("/resources/requests/storage")?;
    let amount = fairway_kernel_scalar::quantity::Quantity::from_value(text)?;
    u64::try_from(amount.value()).ok()
}

/// The claim that a DataVolume needs. `content` is how large what it starts from is, where that is known beforehand.
pub(crate) fn render(
    volume: &DataVolume,
    source: &Source,
    class: &str,
    content: Option<u64>,
) -> Result<Value, String> {
    let Some((asked, is_storage)) = spec(volume) else {
        return Err("datavolume one of {pvc, storage} field is required".to_owned());
    };
    let mut spec = asked.as_object().cloned().unwrap_or_default();
    spec.insert("storageClassName".to_owned(), json!(class));
    if is_storage {
        if spec
            .get("accessModes")
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            spec.insert("accessModes".to_owned(), json!([ACCESS_MODE]));
        }
        let mode = spec.get("volumeMode").and_then(Value::as_str).unwrap_or_default();
        if mode.is_empty() || mode == "FromStorageProfile" {
            spec.insert("volumeMode".to_owned(), json!(VOLUME_MODE));
        }
        match (requested(volume), content) {
            (Some(size), _) if size < SMALLEST => {
                return Err("PVC Spec is not valid - storage size should be at least 1MiB".to_owned());
            }
            (Some(_), _) => {}
            (None, Some(content)) => {
                let bytes = content.next_multiple_of(SMALLEST);
                spec.insert(
                    "resources".to_owned(),
                    json!({"requests": {"storage": super::fitting::shown(bytes)}}),
                );
            }
            (None, None) => return Err("PVC Spec is not valid - missing storage size".to_owned()),
        }
    }
    let is_filesystem = spec.get("volumeMode").and_then(Value::as_str) != Some("Block");
    let metadata = &volume.metadata;
    Ok(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": labels(volume, is_filesystem),
            "annotations": annotations(volume, source),
            "ownerReferences": [{
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": metadata.name, "uid": metadata.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
            "finalizers": [names::PVC_PROTECTION],
        },
        "spec": spec,
    }))
}

fn labels(volume: &DataVolume, is_filesystem: bool) -> Map<String, Value> {
    let mut labels = Map::new();
    let fixed = [
        names::CDI_LABEL,
        ("app.kubernetes.io/component", "storage"),
        ("app.kubernetes.io/managed-by", "cdi-controller"),
    ];
    let quiet = is_filesystem.then_some(names::NO_FILLING_UP_ALERT);
    for (name, value) in fixed.into_iter().chain(quiet) {
        labels.insert(name.to_owned(), json!(value));
    }
    for (name, value) in &volume.metadata.labels {
        labels.insert(name.clone(), json!(value));
    }
    labels
}

fn annotations(volume: &DataVolume, source: &Source) -> Map<String, Value> {
    let mut annotations = Map::new();
    for (name, value) in &volume.metadata.annotations {
        if !names::NOT_COPIED.contains(&name.as_str()) {
            annotations.insert(name.clone(), json!(value));
        }
    }
    let fixed = [
        (names::POD_RESTARTS, "0".to_owned()),
        (names::CONTENT_TYPE, "kubevirt".to_owned()),
        (names::PREALLOCATION, volume.spec.preallocation.to_string()),
        (names::CREATED_FOR, volume.metadata.uid.clone()),
    ];
    for (name, value) in fixed.into_iter().chain(source.annotations()) {
        annotations.insert(name.to_owned(), json!(value));
    }
    annotations
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;

    fn volume(spec: &Value) -> DataVolume {
        let object = json!({
            "metadata": {
                "name": "d", "namespace": "shop", "uid": "u1", "labels": {"team": "a"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "x"},
            },
            "spec": spec,
        });
        DataVolume::deserialize(object).unwrap()
    }

    #[test]
    fn what_storage_leaves_out_is_filled_in() {
        let it = volume(&json!({"storage": {"resources": {"requests": {"storage": "1Gi"}}}}));
        let claim = render(&it, &Source::Blank, "local", None).unwrap();
        assert_eq!(
            claim["spec"],
            json!({
                "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            })
        );
        let annotations = &claim["metadata"]["annotations"];
        assert_eq!(annotations["note"], "x");
        assert_eq!(annotations[names::IMPORT_SOURCE], "none");
        assert!(
            annotations
                .get("kubectl.kubernetes.io/last-applied-configuration")
                .is_none()
        );
        assert_eq!(claim["metadata"]["labels"]["team"], "a");
        assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "u1");
    }

    #[test]
    fn what_a_claim_says_is_kept() {
        let pvc = json!({"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "resources": {"requests": {"storage": "5"}}});
        let claim = render(&volume(&json!({"pvc": pvc})), &Source::Blank, "fast", None).unwrap();
        assert_eq!(claim["spec"]["volumeMode"], "Block");
        assert_eq!(claim["spec"]["storageClassName"], "fast");
        assert!(
            claim["metadata"]["labels"]
                .get(names::NO_FILLING_UP_ALERT.0)
                .is_none()
        );
    }

    #[test]
    fn sizes() {
        for (spec, content, expected) in [
            (json!({}), None, Err("one of {pvc, storage}")),
            (json!({"storage": {}}), None, Err("missing storage size")),
            (
                json!({"storage": {"resources": {"requests": {"storage": "4Ki"}}}}),
                None,
                Err("at least 1MiB"),
            ),
            (json!({"storage": {}}), Some(3_000_000), Ok("3Mi")),
            (
                json!({"storage": {"resources": {"requests": {"storage": "2Gi"}}}}),
                Some(3_000_000),
                Ok("2Gi"),
            ),
        ] {
            let rendered = render(&volume(&spec), &Source::Blank, "local", content);
            match (rendered, expected) {
                (Ok(claim), Ok(size)) => {
                    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], size, "{spec}");
                }
                (Err(why), Err(words)) => assert!(why.contains(words), "{spec}: {why}"),
                other => panic!("{spec}: {other:?}"),
            }
        }
    }
}
