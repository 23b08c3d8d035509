//! What an instance was started from: the record of it, and how it is compared with what the machine says now.

use fairway_api::kubevirt::VIRTUAL_MACHINE;
use fairway_controller::{Failure, Requests};
use fairway_machines_plan::instancetype::{Conflicts, expand};
use serde_json::{Value, json};

use super::size::Sizes;
use crate::objects::{CREATED_BY, items, ours, owner, read, revisions, text};

/// The name of the record.
fn name(vm: &Value) -> String {
    let generation = vm["metadata"]["generation"].as_i64().unwrap_or_default();
    format!("revision-start-vm-{}-{generation}", text(vm, "/metadata/uid"))
}

/// Records what an instance is about to be started from, and gives the record's name. `vm` names the copies of its size
/// and taste.
pub(crate) async fn record(vm: &Value, requests: &Requests) -> Result<String, Failure> {
    let (namespace, uid) = (text(vm, "/metadata/namespace"), text(vm, "/metadata/uid"));
    let name = name(vm);
    let record = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {CREATED_BY: uid},
            "ownerReferences": [owner(&VIRTUAL_MACHINE, vm)],
        },
        "data": {"spec": vm["spec"]},
        "revision": vm["metadata"]["generation"],
    });
    requests.create(&ours(&revisions(namespace)), &record).await?;
    Ok(name)
}

/// Removes the records of earlier starts.
pub(crate) async fn forget_earlier(vm: &Value, requests: &Requests) -> Result<(), Failure> {
    let uid = text(vm, "/metadata/uid");
    let (all, name) = (revisions(text(vm, "/metadata/namespace")), name(vm));
    let selector = format!("{CREATED_BY}={uid}");
    let records = requests.list_selected(&all, &selector).await?;
    let earlier = records.iter().filter(|it| text(it, "/metadata/name") != name);
    for revision in earlier {
        let path = format!("{all}/{}", text(revision, "/metadata/name"));
        requests.delete_read(&path, revision).await?;
    }
    Ok(())
}

/// The machine's spec that an instance was started from; nothing if there is no record of it.
pub(crate) async fn recorded(vmi: &Value, requests: &Requests) -> Result<Option<Value>, Failure> {
    let name = text(vmi, "/status/virtualMachineRevisionName");
    if name.is_empty() {
        return Ok(None);
    }
    let path = format!("{}/{name}", revisions(text(vmi, "/metadata/namespace")));
    let spec = read(requests, &path)
        .await?
        .map(|mut it| it["data"]["spec"].take());
    Ok(spec.filter(Value::is_object))
}

/// The spec of a template, with size and taste in it.
pub(crate) fn expanded(spec: &Value, sizes: &Sizes) -> Result<Value, Conflicts> {
    let mut template = spec["template"].clone();
    expand(&mut template, sizes.size.as_ref(), sizes.taste.as_ref())?;
    Ok(template["spec"].take())
}

/// Volumes that were plugged into machine and instance by a request need no restart, whatever the settings say: what an
/// instance was started from is taken to have had them.
pub(crate) fn with_plugged(mut started: Value, current: &Value, vmi: &Value) -> Value {
    let names = |from: &Value, list: &str| -> Vec<String> {
        let mut names: Vec<String> = items(from, list).map(|it| it["name"].to_string()).collect();
        names.sort();
        names
    };
    let lists = ["/volumes", "/domain/devices/disks"];
    let settled = lists
        .iter()
        .all(|list| names(current, list) == names(&vmi["spec"], list));
    let only_plugged = items(current, "/volumes").all(|volume| {
        let before = items(&started, "/volumes").find(|it| it["name"] == volume["name"]);
        let source = ["persistentVolumeClaim", "dataVolume"];
        before == Some(volume) || source.iter().any(|it| volume[*it]["hotpluggable"] == true)
    });
    let only_unplugged = items(&started, "/volumes").all(|volume| {
        let source = ["persistentVolumeClaim", "dataVolume"];
        let stays = items(current, "/volumes").any(|it| it["name"] == volume["name"]);
        stays || source.iter().any(|it| volume[*it]["hotpluggable"] == true)
    });
    if settled && only_plugged && only_unplugged {
        started["volumes"] = current["volumes"].clone();
        started["domain"]["devices"]["disks"] = current["domain"]["devices"]["disks"].clone();
    }
    started
}

#[cfg(test)]
mod tests {
    use fairway_controller::fake::Script;

    use super::*;

    #[tokio::test]
    async fn a_start_is_recorded_in_place_of_the_last() {
        let all = "/apis/apps/v1/namespaces/vms/controllerrevisions";
        let old = json!({"metadata": {"name": "revision-start-vm-u-1", "uid": "r-1"}});
        let new = json!({"metadata": {"name": "revision-start-vm-u-2", "uid": "r-2"}});
        let script = Script::new()
            .expect(
                "POST",
                &format!("{all}?fieldManager=virt-controller"),
                201,
                json!({}),
            )
            .expect(
                "GET",
                &format!("{all}?labelSelector=kubevirt.io%2Fcreated-by%3Du"),
                200,
                json!({"items": [old, new]}),
            )
            .expect("DELETE", &format!("{all}/revision-start-vm-u-1"), 200, json!({}));
        let vm = json!({
            "metadata": {"name": "web", "namespace": "vms", "uid": "u", "generation": 2}, "spec": {"template": {}},
        });
        let requests = Requests::new(script.client());
        let name = record(&vm, &requests).await.unwrap();
        assert_eq!(name, "revision-start-vm-u-2");
        forget_earlier(&vm, &requests).await.unwrap();
        let calls = script.finish();
        assert_eq!(calls[0].body["data"], json!({"spec": {"template": {}}}));
        assert_eq!(calls[0].body["revision"], 2);
        assert_eq!(calls[2].body["preconditions"]["uid"], "r-1");
    }

    #[test]
    fn what_was_plugged_in_counts_as_there_from_the_start() {
        let spec = |volumes: Value| {
            let names: Vec<Value> = volumes
                .as_array()
                .unwrap()
                .iter()
                .map(|it| json!({"name": it["name"]}))
                .collect();
            json!({"volumes": volumes, "domain": {"devices": {"disks": names}}})
        };
        let root = json!({"name": "root", "containerDisk": {"image": "i"}});
        let plugged = json!({"name": "data", "dataVolume": {"name": "d", "hotpluggable": true}});
        let fixed = json!({"name": "data", "dataVolume": {"name": "d"}});
        let (one, two, other) = (
            spec(json!([root])),
            spec(json!([root, plugged])),
            spec(json!([root, fixed])),
        );
        for (name, started, current, vmi, expected) in [
            ("plugged in", &one, &two, &two, &two),
            ("plugged out", &two, &one, &one, &one),
            ("the instance does not have it yet", &one, &two, &one, &one),
            ("it cannot be plugged", &one, &other, &other, &one),
        ] {
            let vmi = json!({"spec": vmi});
            assert_eq!(&with_plugged(started.clone(), current, &vmi), expected, "{name}");
        }
    }
}
