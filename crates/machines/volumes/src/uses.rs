//! Which claims a machine uses.

use std::collections::BTreeSet;

use fairway_controller::{Failure, ObjectKey, Requests};
use serde_json::Value;

/// The claims that an instance has as disks, whatever state it is in. A DataVolume's claim has its name.
pub(crate) fn claims(instance: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    for volume in instance
        .pointer("/spec/volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        for pointer in [
            "/persistentVolumeClaim/claimName",
            "/ephemeral/persistentVolumeClaim/claimName",
            "/dataVolume/name",
            "/memoryDump/claimName",
        ] {
            found.extend(text(volume, pointer));
        }
    }
    // One that was taken away while the machine runs, and is not out of it yet.
    for status in instance
        .pointer("/status/volumeStatus")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        found.extend(text(status, "/persistentVolumeClaimInfo/claimName"));
    }
    found
}

/// Whether an instance may write to its disks: it has a node and has not ended.
pub(crate) fn holds(instance: &Value) -> bool {
    let text = |pointer: &str| {
        instance
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    !text("/status/nodeName").is_empty() && !matches!(text("/status/phase"), "Succeeded" | "Failed")
}

/// The instance that holds a claim now, if one does. Where no machines are served there is none.
pub(crate) async fn holder(requests: &Requests, claim: &ObjectKey) -> Result<Option<String>, Failure> {
    let path = format!(
        "/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances",
        claim.namespace
    );
    let Some(list) = requests.get(&path).await? else {
        return Ok(None);
    };
    let mut instances = list["items"].as_array().into_iter().flatten();
    let holder = instances.find(|it| holds(it) && claims(it).contains(&claim.name));
    Ok(holder.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_use_a_claim_is_seen() {
        let instance = json!({
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "a"}},
                {"name": "b", "dataVolume": {"name": "b"}},
                {"name": "c", "ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}},
                {"name": "d", "memoryDump": {"claimName": "d"}},
                {"name": "e", "containerDisk": {"image": "e"}},
            ]},
            "status": {"volumeStatus": [{"name": "f", "persistentVolumeClaimInfo": {"claimName": "f"}}, {"name": "e"}]},
        });
        let names: Vec<String> = claims(&instance).into_iter().collect();
        assert_eq!(names, ["a", "b", "c", "d", "f"]);
        assert!(claims(&json!({})).is_empty());
    }

    #[test]
    fn a_machine_holds_its_disks_while_it_has_a_node() {
        for (phase, node, expected) in [
            ("Pending", "", false),
            ("Scheduled", "n1", true),
            ("Running", "n1", true),
            ("Succeeded", "n1", false),
            ("Failed", "n1", false),
        ] {
            let instance = json!({"status": {"phase": phase, "nodeName": node}});
            assert_eq!(holds(&instance), expected, "{phase} {node}");
        }
    }
}
