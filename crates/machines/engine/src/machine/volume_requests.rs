//! Volumes that somebody asked to plug in or out, through the machine: they become part of its spec, and of its instance's.

use serde_json::{Value, json};

use crate::objects::{items, text};

/// The lists that a request changes, from `spec` of an instance on.
const VOLUMES: &str = "/volumes";
const DISKS: &str = "/domain/devices/disks";

/// The spec of a template or of an instance after a request; nothing if that changes nothing.
pub(crate) fn applied(spec: &Value, request: &Value) -> Option<Value> {
    let mut lists = [VOLUMES, DISKS].map(|path| items(spec, path).cloned().collect::<Vec<Value>>());
    let before = lists.clone();
    let [volumes, disks] = &mut lists;
    if let Some(wanted) = request.get("addVolumeOptions") {
        let name = text(wanted, "/name");
        if volumes.iter().any(|it| it["name"] == name) {
            return None;
        }
        volumes.push(volume(wanted)?);
        if wanted["disk"].is_object() {
            let mut disk = wanted["disk"].clone();
            disk["name"] = json!(name);
            disks.push(disk);
        }
    } else if let Some(unwanted) = request.get("removeVolumeOptions") {
        for list in [volumes, disks] {
            list.retain(|it| it["name"] != unwanted["name"]);
        }
    }
    if lists == before {
        return None;
    }
    let [volumes, disks] = lists;
    let mut spec = spec.clone();
    spec["volumes"] = Value::Array(volumes);
    spec["domain"]["devices"]["disks"] = Value::Array(disks);
    Some(spec)
}

fn volume(wanted: &Value) -> Option<Value> {
    let source = ["persistentVolumeClaim", "dataVolume"].into_iter();
    let (kind, source) = source
        .map(|kind| (kind, &wanted["volumeSource"][kind]))
        .find(|(_, source)| source.is_object())?;
    let mut source = source.clone();
    source["hotpluggable"] = json!(true);
    Some(json!({"name": wanted["name"], kind: source}))
}

/// Those requests of a machine that its template does not show yet.
pub(crate) fn left(vm: &Value) -> Vec<Value> {
    let spec = &vm["spec"]["template"]["spec"];
    let has = |list: &str, name: &Value| items(spec, list).any(|it| it["name"] == *name);
    let is_done = |request: &Value| match (
        request.get("addVolumeOptions"),
        request.get("removeVolumeOptions"),
    ) {
        (Some(wanted), _) => has(VOLUMES, &wanted["name"]) && has(DISKS, &wanted["name"]),
        (None, Some(unwanted)) => !has(VOLUMES, &unwanted["name"]) && !has(DISKS, &unwanted["name"]),
        (None, None) => true,
    };
    items(vm, "/status/volumeRequests")
        .filter(|it| !is_done(it))
        .cloned()
        .collect()
}

/// A merge patch of the lists of a spec.
pub(crate) fn lists(spec: &Value) -> Value {
    json!({
        "volumes": spec["volumes"],
        "domain": {"devices": {"disks": spec["domain"]["devices"]["disks"]}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Value {
        json!({
            "domain": {"cpu": {"cores": 1}, "devices": {"disks": [{"name": "root"}]}},
            "volumes": [{"name": "root", "dataVolume": {"name": "root"}}],
        })
    }

    #[test]
    fn volumes_come_and_go() {
        let add = json!({"addVolumeOptions": {
            "name": "data", "disk": {"disk": {"bus": "scsi"}}, "volumeSource": {"dataVolume": {"name": "d"}},
        }});
        let added = applied(&spec(), &add).unwrap();
        let expected = json!({
            "domain": {"cpu": {"cores": 1}, "devices": {"disks": [
                {"name": "root"}, {"disk": {"bus": "scsi"}, "name": "data"},
            ]}},
            "volumes": [
                {"name": "root", "dataVolume": {"name": "root"}},
                {"name": "data", "dataVolume": {"name": "d", "hotpluggable": true}},
            ],
        });
        assert_eq!(added, expected);
        assert_eq!(applied(&added, &add), None, "it is there already");
        let remove = json!({"removeVolumeOptions": {"name": "data"}});
        assert_eq!(applied(&added, &remove), Some(spec()));
        assert_eq!(applied(&spec(), &remove), None);
        let nothing = json!({"addVolumeOptions": {"name": "data", "disk": {}, "volumeSource": {}}});
        assert_eq!(applied(&spec(), &nothing), None, "there is nothing to plug in");
    }

    #[test]
    fn requests_stay_until_the_template_shows_them() {
        let vm = json!({
            "spec": {"template": {"spec": spec()}},
            "status": {"volumeRequests": [
                {"addVolumeOptions": {"name": "root"}},
                {"addVolumeOptions": {"name": "data"}},
                {"removeVolumeOptions": {"name": "gone"}},
                {"removeVolumeOptions": {"name": "root"}},
                {},
            ]},
        });
        let left = left(&vm);
        assert_eq!(
            left,
            [
                json!({"addVolumeOptions": {"name": "data"}}),
                json!({"removeVolumeOptions": {"name": "root"}})
            ]
        );
    }
}
