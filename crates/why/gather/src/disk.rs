//! A disk that was asked about: what fills it, what holds it, the machine that uses it, and what was said of them.

use fairway_why_chain::{Disk, Facts};
use serde_json::Value;

use crate::Places;
use crate::entry::Entry;
use crate::machines;
use crate::read::{Reader, collection, items, text};

const CDI: &str = "cdi.kubevirt.io/v1beta1";

/// The machine that has a disk among its volumes.
pub(crate) async fn user(reader: &Reader, entry: &Entry) -> Option<Value> {
    if !entry.is_disk() {
        return None;
    }
    let all = reader
        .list_in("virtualmachines", "kubevirt.io/v1", &entry.namespace)
        .await?;
    all.into_iter().find(|it| uses(it, &entry.name))
}

fn uses(machine: &Value, disk: &str) -> bool {
    items(machine, "/spec/template/spec/volumes").iter().any(|it| {
        text(it, "/dataVolume/name") == disk || text(it, "/persistentVolumeClaim/claimName") == disk
    })
}

/// Finds all of it.
pub(crate) async fn find(reader: &Reader, places: &Places, entry: &Entry, facts: &mut Facts) {
    if !entry.is_disk() {
        return;
    }
    let (name, space) = (&entry.name, &entry.namespace);
    // A claim is called like the DataVolume that fills it.
    let volume = format!("{}/{name}", collection(CDI, "datavolumes", space));
    let claim = format!("{}/{name}", collection("v1", "persistentvolumeclaims", space));
    let events = format!(
        "{}?fieldSelector=involvedObject.name%3D{name}",
        collection("v1", "events", space)
    );
    let (data_volume, claim, events) = tokio::join!(
        reader.get("datavolumes", &volume),
        reader.get("persistentvolumeclaims", &claim),
        reader.list("events", &events),
    );
    let data_sources = machines::sources(reader, places, data_volume.as_slice()).await;
    facts.disk = Some(Disk {
        name: name.clone(),
        data_volume,
        claim,
        data_sources,
        events: events.unwrap_or_default(),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::uses;

    #[test]
    fn a_disk_is_used_by_either_of_its_names() {
        for (volume, expected) in [
            (json!({"dataVolume": {"name": "web-root"}}), true),
            (json!({"persistentVolumeClaim": {"claimName": "web-root"}}), true),
            (json!({"dataVolume": {"name": "db-root"}}), false),
            (json!({"containerDisk": {"image": "web-root"}}), false),
        ] {
            let machine = json!({"spec": {"template": {"spec": {"volumes": [volume]}}}});
            assert_eq!(uses(&machine, "web-root"), expected, "{machine}");
        }
    }
}
