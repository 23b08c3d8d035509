//! What an upload makes or takes. Values in, values out.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use serde_json::{Map, Value, json};

use crate::cli::vm::storage::ImageUpload;

/// Says that a claim is to be filled by an upload.
pub(super) const UPLOAD_TARGET: &str = "cdi.kubevirt.io/storage.upload.target";
/// Says that it can be.
pub(super) const POD_READY: &str = "cdi.kubevirt.io/storage.pod.ready";
/// Says that it is.
pub(super) const POD_PHASE: &str = "cdi.kubevirt.io/storage.pod.phase";
const CONTENT_TYPE: &str = "cdi.kubevirt.io/storage.contentType";
const BIND_AT_ONCE: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";

/// What is to be uploaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// Into a claim, not a DataVolume.
    pub(super) is_claim: bool,
    pub(super) is_archive: bool,
}

/// Reads words and flags.
pub(super) fn read(options: &ImageUpload) -> anyhow::Result<Upload> {
    let mode = options.volume_mode.as_str();
    ensure!(
        matches!(mode, "" | "block" | "filesystem"),
        "Invalid volume mode '{mode}'. Valid values are 'block' and 'filesystem'."
    );
    let (file, is_archive) = match (&options.image_path, &options.archive_path) {
        (None, None) => bail!("either image-path or archive-path must be provided"),
        (Some(_), Some(_)) => bail!("cannot handle both image-path and archive-path, provide only one"),
        (None, Some(_)) if mode == "block" => {
            bail!("In archive upload the volume mode should always be filesystem")
        }
        (Some(image), None) => (image, false),
        (None, Some(archive)) => (archive, true),
    };
    let [kind, name] = options.words.as_slice() else {
        bail!("expecting two args");
    };
    let is_claim = match kind.to_lowercase().as_str() {
        "dv" => false,
        "pvc" => true,
        _ => bail!("invalid resource type {kind}"),
    };
    let is_given = |it: &String| !it.is_empty();
    ensure!(
        is_given(&options.default_instancetype) || !is_given(&options.default_instancetype_kind),
        "--default-instancetype must be provided with --default-instancetype-kind"
    );
    ensure!(
        is_given(&options.default_preference) || !is_given(&options.default_preference_kind),
        "--default-preference must be provided with --default-preference-kind"
    );
    let has_default = is_given(&options.default_instancetype) || is_given(&options.default_preference);
    ensure!(
        !(has_default && options.uses_existing),
        "--default-instancetype and --default-preference cannot be used with --no-create"
    );
    Ok(Upload {
        name: name.clone(),
        file: file.clone(),
        is_claim,
        is_archive,
    })
}

/// The volume to make.
pub(super) fn object(
    options: &ImageUpload,
    upload: &Upload,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Value> {
    ensure!(
        !options.size.is_empty(),
        "when creating a resource, the size must be specified"
    );
    ensure!(
        options.access_mode != "ReadOnlyMany",
        "cannot upload to a readonly volume, use either ReadWriteOnce or ReadWriteMany if supported"
    );
    let mut spec = json!({"resources": {"requests": {"storage": options.size}}});
    if !options.storage_class.is_empty() {
        spec["storageClassName"] = json!(options.storage_class);
    }
    match (options.access_mode.as_str(), upload.is_claim) {
        ("", true) => spec["accessModes"] = json!(["ReadWriteOnce"]),
        ("", false) => {}
        (mode, _) => spec["accessModes"] = json!([mode]),
    }
    match options.volume_mode.as_str() {
        "block" => spec["volumeMode"] = json!("Block"),
        "filesystem" => spec["volumeMode"] = json!("Filesystem"),
        _ => {}
    }
    let content = match upload.is_archive {
        true => "archive",
        false => "kubevirt",
    };
    let mut annotations = Map::new();
    if options.forces_bind {
        annotations.insert(BIND_AT_ONCE.to_owned(), json!(""));
    }
    if upload.is_claim {
        annotations.insert(UPLOAD_TARGET.to_owned(), json!(""));
        annotations.insert(CONTENT_TYPE.to_owned(), json!(content));
        return Ok(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name, "namespace": namespace, "annotations": annotations, "labels": labels(options),
            },
            "spec": spec,
        }));
    }
    Ok(json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations, "labels": labels(options)},
        "spec": {"source": {"upload": {}}, "contentType": content, "storage": spec},
    }))
}

/// What goes with the image.
pub(super) fn labels(options: &ImageUpload) -> Value {
    let all = [
        ("default-instancetype", &options.default_instancetype),
        ("default-instancetype-kind", &options.default_instancetype_kind),
        ("default-preference", &options.default_preference),
        ("default-preference-kind", &options.default_preference_kind),
    ];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    given
        .map(|(key, value)| (format!("instancetype.kubevirt.io/{key}"), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// What an annotation says.
pub(super) fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// Whether a claim that is there can be filled. `data_volume`: that of the same name, if it must have one.
pub(super) fn usable(
    claim: &Value,
    data_volume: Option<Option<&Value>>,
    is_existing_wanted: bool,
    is_archive: bool,
) -> anyhow::Result<()> {
    let name = claim["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = claim["metadata"]["namespace"].as_str().unwrap_or_default();
    match data_volume {
        Some(None) => bail!("No DataVolume is associated with the existing PVC {namespace}/{name}"),
        Some(Some(_)) if claim["status"]["phase"] == "Bound" => {
            bail!("PVC {name} already successfully populated")
        }
        _ => {}
    }
    ensure!(
        annotation(claim, POD_PHASE) != Some("Succeeded"),
        "PVC {name} already successfully imported/cloned/updated"
    );
    ensure!(
        is_existing_wanted || annotation(claim, UPLOAD_TARGET).is_some(),
        "PVC {name} not available for upload"
    );
    ensure!(
        !is_archive || annotation(claim, CONTENT_TYPE) == Some("archive"),
        "PVC {name} doesn't have archive contentType annotation"
    );
    Ok(())
}

/// Whether a DataVolume can be filled now.
pub(super) fn is_upload_ready(data_volume: &Value, forces_bind: bool) -> anyhow::Result<bool> {
    match data_volume["status"]["phase"].as_str() {
        Some(phase @ ("WaitForFirstConsumer" | "PendingPopulation")) if !forces_bind => bail!(
            "cannot upload to DataVolume in {phase} phase, make sure the PVC is Bound, or use force-bind flag"
        ),
        phase => Ok(phase == Some("UploadReady")),
    }
}

/// What events say of a volume that will never be ready.
pub(super) fn complaint(events: &[Value], name: &str) -> Option<String> {
    events.iter().find_map(|event| {
        let about = &event["involvedObject"];
        if about["name"] != name {
            return None;
        }
        let message = event["message"].as_str().unwrap_or_default();
        match (about["kind"].as_str()?, event["reason"].as_str()?) {
            ("PersistentVolumeClaim", "ProvisioningFailed")
                if !message.contains("the object has been modified") =>
            {
                Some(format!("Provisioning failed: {message}"))
            }
            ("DataVolume", "ErrClaimNotValid") => Some(format!("Claim not valid: {message}")),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::vm::VmCommand;
    use crate::cli::{Cli, Command};

    fn options(line: &str) -> ImageUpload {
        let words = format!("fairway vm image-upload {line}");
        let cli = Cli::try_parse_from(words.split_whitespace()).unwrap();
        match cli.command {
            Command::Vm(vm) => match vm.command {
                VmCommand::ImageUpload(options) => *options,
                other => panic!("{other:?}"),
            },
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn lines_that_make_no_sense() {
        for (line, expected) in [
            (
                "dv a --volume-mode=x --image-path=f",
                "Invalid volume mode 'x'. Valid values are 'block' and 'filesystem'.",
            ),
            ("dv a", "either image-path or archive-path must be provided"),
            (
                "dv a --image-path=f --archive-path=g",
                "cannot handle both image-path and archive-path, provide only one",
            ),
            (
                "dv a --archive-path=g --volume-mode=block",
                "In archive upload the volume mode should always be filesystem",
            ),
            ("a --image-path=f", "expecting two args"),
            ("vm a --image-path=f", "invalid resource type vm"),
            (
                "dv a --image-path=f --default-preference-kind=x",
                "--default-preference must be provided with --default-preference-kind",
            ),
            (
                "dv a --image-path=f --default-preference=x --no-create",
                "--default-instancetype and --default-preference cannot be used with --no-create",
            ),
        ] {
            assert_eq!(read(&options(line)).unwrap_err().to_string(), expected, "{line}");
        }
    }

    #[test]
    fn volumes_to_make() {
        let made = |line: &str| {
            let options = options(line);
            object(&options, &read(&options).unwrap(), "ns", "a").map_err(|error| error.to_string())
        };
        assert_eq!(
            made("dv a --image-path=f --size=1Gi --force-bind --default-preference=linux"),
            Ok(json!({
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
                "metadata": {
                    "name": "a", "namespace": "ns", "annotations": {BIND_AT_ONCE: ""},
                    "labels": {"instancetype.kubevirt.io/default-preference": "linux"},
                },
                "spec": {
                    "source": {"upload": {}}, "contentType": "kubevirt",
                    "storage": {"resources": {"requests": {"storage": "1Gi"}}},
                },
            }))
        );
        assert_eq!(
            made("pvc a --archive-path=f --size=1Gi --storage-class=local --volume-mode=filesystem"),
            Ok(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": "a", "namespace": "ns", "annotations": {UPLOAD_TARGET: "", CONTENT_TYPE: "archive"},
                    "labels": {},
                },
                "spec": {
                    "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "local",
                    "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                },
            }))
        );
        let no_size = "when creating a resource, the size must be specified".to_owned();
        assert_eq!(made("dv a --image-path=f"), Err(no_size));
        assert!(
            made("dv a --image-path=f --size=1Gi --access-mode=ReadOnlyMany")
                .unwrap_err()
                .starts_with("cannot upload to a readonly volume")
        );
    }

    #[test]
    fn volumes_that_are_there() {
        let claim = |annotations: Value, phase: &str| {
            json!({
                "metadata": {"name": "a", "namespace": "ns", "annotations": annotations}, "status": {"phase": phase},
            })
        };
        let target = || json!({UPLOAD_TARGET: ""});
        let owner = json!({});
        for (claim, owner, wanted, archive, expected) in [
            (claim(target(), "Pending"), None, false, false, ""),
            (claim(json!({}), "Pending"), None, true, false, ""),
            (
                claim(json!({}), "Pending"),
                None,
                false,
                false,
                "PVC a not available for upload",
            ),
            (
                claim(json!({POD_PHASE: "Succeeded"}), "Bound"),
                None,
                true,
                false,
                "PVC a already successfully imported/cloned/updated",
            ),
            (
                claim(target(), "Pending"),
                Some(None),
                false,
                false,
                "No DataVolume is associated with the existing PVC ns/a",
            ),
            (
                claim(target(), "Bound"),
                Some(Some(&owner)),
                false,
                false,
                "PVC a already successfully populated",
            ),
            (
                claim(target(), "Pending"),
                None,
                false,
                true,
                "PVC a doesn't have archive contentType annotation",
            ),
        ] {
            let said = usable(&claim, owner, wanted, archive)
                .map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(said, expected, "{claim}");
        }
    }

    #[test]
    fn waiting_ends() {
        let phase = |word: &str| json!({"status": {"phase": word}});
        assert!(is_upload_ready(&phase("UploadReady"), false).unwrap());
        assert!(!is_upload_ready(&phase("UploadScheduled"), false).unwrap());
        assert!(is_upload_ready(&phase("WaitForFirstConsumer"), false).is_err());
        assert!(!is_upload_ready(&phase("WaitForFirstConsumer"), true).unwrap());
        let event = |kind: &str, reason: &str| json!({"involvedObject": {"kind": kind, "name": "a"}, "reason": reason, "message": "no"});
        let events = [
            event("Pod", "Failed"),
            event("PersistentVolumeClaim", "ProvisioningFailed"),
        ];
        assert_eq!(
            complaint(&events, "a").as_deref(),
            Some("Provisioning failed: no")
        );
        assert_eq!(complaint(&events, "b"), None);
        let events = [event("DataVolume", "ErrClaimNotValid")];
        assert_eq!(complaint(&events, "a").as_deref(), Some("Claim not valid: no"));
    }
}
