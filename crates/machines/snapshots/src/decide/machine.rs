//! A machine's disks, and the machine with other ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::text;

/// The volumes of a machine that are claims: their names, and those of their claims. A DataVolume's claim has its name.
pub(crate) fn claims(machine: &Value) -> BTreeMap<String, String> {
    let volumes = machine
        .pointer("/spec/template/spec/volumes")
        .and_then(Value::as_array);
    let claims = volumes.into_iter().flatten().filter_map(|volume| {
        let claim = match text(volume, "/persistentVolumeClaim/claimName") {
            "" => text(volume, "/dataVolume/name"),
            claim => claim,
        };
        (!claim.is_empty()).then(|| (text(volume, "/name").to_owned(), claim.to_owned()))
    });
    claims.collect()
}

/// The names of all volumes.
pub(crate) fn volumes(machine: &Value) -> Vec<String> {
    let volumes = machine
        .pointer("/spec/template/spec/volumes")
        .and_then(Value::as_array);
    volumes
        .into_iter()
        .flatten()
        .map(|it| text(it, "/name").to_owned())
        .collect()
}

/// Whether a DataVolume is made along with its machine.
pub(crate) fn is_templated(machine: &Value, data_volume: &str) -> bool {
    let templates = machine
        .pointer("/spec/dataVolumeTemplates")
        .and_then(Value::as_array);
    templates
        .into_iter()
        .flatten()
        .any(|it| text(it, "/metadata/name") == data_volume)
}

/// What a snapshot keeps of metadata.
pub(crate) fn kept_metadata(metadata: &Value) -> Value {
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "labels", "annotations"] {
        if let Some(value) = metadata.get(field) {
            kept[field] = value.clone();
        }
    }
    kept
}

/// The spec of a machine whose volumes are on other claims: by the name of the volume, the claim, and the DataVolume if there is one.
/// Dumps of memory are left out: they are of another run.
pub(crate) fn with_claims(machine: &Value, claims: &BTreeMap<String, (String, Option<String>)>) -> Value {
    let mut spec = machine["spec"].clone();
    let mut renamed = BTreeMap::new();
    let volumes = spec
        .pointer("/template/spec/volumes")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut kept = Vec::new();
    for mut volume in volumes {
        if volume.get("memoryDump").is_some() {
            continue;
        }
        if let Some((claim, data_volume)) = claims.get(text(&volume, "/name")) {
            let old = text(&volume, "/dataVolume/name").to_owned();
            match (old.is_empty(), data_volume) {
                (true, _) => volume["persistentVolumeClaim"]["claimName"] = json!(claim),
                (false, Some(data_volume)) => {
                    volume["dataVolume"]["name"] = json!(data_volume);
                    renamed.insert(old, data_volume.clone());
                }
                (false, None) => {
                    volume = json!({"name": volume["name"], "persistentVolumeClaim": {"claimName": claim}});
                }
            }
        }
        kept.push(volume);
    }
    if let Some(volumes) = spec.pointer_mut("/template/spec/volumes") {
        *volumes = json!(kept);
    }
    for template in spec["dataVolumeTemplates"].as_array_mut().into_iter().flatten() {
        if let Some(name) = renamed.get(text(template, "/metadata/name")) {
            template["metadata"]["name"] = json!(name);
        }
    }
    if spec["dataVolumeTemplates"].is_null()
        && let Some(fields) = spec.as_object_mut()
    {
        fields.shift_remove("dataVolumeTemplates");
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Value {
        json!({"spec": {
            "dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": {}}],
            "template": {"spec": {"volumes": [
                {"name": "root", "dataVolume": {"name": "web-root"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
                {"name": "more", "dataVolume": {"name": "shared"}},
                {"name": "seed", "cloudInitNoCloud": {"userData": "x"}},
                {"name": "dump", "memoryDump": {"claimName": "dump"}},
            ]}},
        }})
    }

    #[test]
    fn claims_are_found() {
        let found = claims(&machine());
        let names: Vec<&str> = found.values().map(String::as_str).collect();
        assert_eq!(names, ["web-data", "shared", "web-root"]);
        assert_eq!(volumes(&machine()).len(), 5);
        assert!(is_templated(&machine(), "web-root") && !is_templated(&machine(), "shared"));
    }

    #[test]
    fn a_machine_gets_other_disks() {
        let to = |claim: &str, data_volume: Option<&str>| (claim.to_owned(), data_volume.map(str::to_owned));
        let claims = BTreeMap::from([
            ("root".to_owned(), to("r-root", Some("r-root"))),
            ("data".to_owned(), to("r-data", None)),
            ("more".to_owned(), to("r-more", None)),
        ]);
        let spec = with_claims(&machine(), &claims);
        assert_eq!(
            spec["template"]["spec"]["volumes"],
            json!([
                {"name": "root", "dataVolume": {"name": "r-root"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "r-data"}},
                {"name": "more", "persistentVolumeClaim": {"claimName": "r-more"}},
                {"name": "seed", "cloudInitNoCloud": {"userData": "x"}},
            ])
        );
        assert_eq!(spec["dataVolumeTemplates"][0]["metadata"]["name"], "r-root");
    }
}
