//! Changes that are made to an instance while its guest runs, as patches of the instance.
//!
//! An instance has more than its machine's template: what was filled in when it was made, and volumes that were plugged
//! into it alone. So lists are not replaced but changed item by item.

use std::collections::BTreeSet;

use fairway_controller::commit::difference;
use fairway_kernel_scalar::quantity::Quantity;
use fairway_machines_plan::lifecycle::LiveChange;
use serde_json::{Value, json};

use crate::objects::{items, locked};
use crate::schedule::MILLI_PER_VCPU;

/// The patch that makes these changes; nothing if the instance is like that already. `started` and `current` are the
/// specs of the template that the instance came from, and of the one that it is to be like.
pub(crate) fn patch(vmi: &Value, changes: &[LiveChange], started: &Value, current: &Value) -> Option<Value> {
    let mut after = vmi.clone();
    for change in changes {
        let spec = &mut after["spec"];
        match change {
            LiveChange::Sockets(count) => sockets(spec, *count, current),
            LiveChange::Memory(guest) => memory(spec, guest, current),
            LiveChange::Volumes { .. } => {
                merge(spec, "/volumes", started, current);
                merge(spec, "/domain/devices/disks", started, current);
            }
            LiveChange::Interfaces { .. } => {
                merge(spec, "/domain/devices/interfaces", started, current);
                merge(spec, "/networks", started, current);
            }
            LiveChange::Placement { field, value } => match value.is_null() {
                true => drop(spec.as_object_mut().map(|it| it.shift_remove(*field))),
                false => spec[*field] = value.clone(),
            },
            LiveChange::Metadata(patch) => {
                for (field, entries) in patch.as_object().into_iter().flatten() {
                    entries_of(&mut after["metadata"][field.as_str()], entries);
                }
            }
        }
    }
    let mut patch = difference(vmi, &after)?;
    patch["metadata"] = locked(vmi, patch["metadata"].take());
    Some(patch)
}

/// Sets and removes labels or annotations.
fn entries_of(there: &mut Value, entries: &Value) {
    for (name, value) in entries.as_object().into_iter().flatten() {
        match (value.is_null(), there.as_object_mut()) {
            (true, Some(there)) => drop(there.shift_remove(name)),
            (true, None) => {}
            (false, _) => there[name.as_str()] = value.clone(),
        }
    }
}

/// An amount that is asked for, or the limit of it.
fn amount(spec: &Value, which: &str, what: &str) -> Option<Quantity> {
    let said = spec.pointer(&format!("/domain/resources/{which}/{what}"))?;
    Quantity::from_value(said).filter(|it| !it.is_zero())
}

fn sockets(spec: &mut Value, count: u32, current: &Value) {
    let cpu = &spec["domain"]["cpu"];
    let number = |field: &str| cpu[field].as_i64().unwrap_or(1).max(1);
    let more = (i64::from(count) - number("sockets")) * number("cores") * number("threads");
    spec["domain"]["cpu"]["sockets"] = json!(count);
    for which in ["requests", "limits"] {
        // What was filled in follows by itself.
        if let Some(now) = amount(spec, which, "cpu").filter(|_| amount(current, which, "cpu").is_some()) {
            let after = now.milli_value() + more * MILLI_PER_VCPU;
            spec["domain"]["resources"][which]["cpu"] = json!(format!("{after}m"));
        }
    }
}

fn memory(spec: &mut Value, guest: &str, current: &Value) {
    let before = spec
        .pointer("/domain/memory/guest")
        .and_then(Quantity::from_value);
    spec["domain"]["memory"]["guest"] = json!(guest);
    let (Some(before), Some(after)) = (before, Quantity::parse(guest)) else {
        return;
    };
    for which in ["requests", "limits"] {
        let said = which == "requests" || amount(current, which, "memory").is_some();
        if let Some(now) = amount(spec, which, "memory").filter(|_| said) {
            let more = now.plus(after.minus(before));
            let enough = if more < after { after } else { more };
            spec["domain"]["resources"][which]["memory"] = json!(enough.canonical());
        }
    }
}

/// Changes a list of named things as far as the template changed.
fn merge(spec: &mut Value, list: &str, started: &Value, current: &Value) {
    let find = |from: &Value, name: &Value| items(from, list).find(|it| it["name"] == *name).cloned();
    let mut all: Vec<Value> = Vec::new();
    for there in items(spec, list) {
        let name = &there["name"];
        match (find(started, name), find(current, name)) {
            // It was plugged into the instance alone.
            (None, None) => all.push(there.clone()),
            (Some(_), None) => {}
            (before, Some(now)) if before.as_ref() == Some(&now) => all.push(there.clone()),
            (before, Some(now)) => all.push(over(there, &before.unwrap_or_default(), &now)),
        }
    }
    let there: BTreeSet<String> = all.iter().map(|it| it["name"].to_string()).collect();
    all.extend(
        items(current, list)
            .filter(|it| !there.contains(&it["name"].to_string()))
            .cloned(),
    );
    let mut place = &mut *spec;
    for field in list.split('/').skip(1) {
        place = &mut place[field];
    }
    *place = Value::Array(all);
}

/// An item with what changed in its template.
fn over(there: &Value, before: &Value, now: &Value) -> Value {
    let (Some(old), Some(new), Some(fields)) = (before.as_object(), now.as_object(), there.as_object())
    else {
        return now.clone();
    };
    let mut fields = fields.clone();
    fields.retain(|field, _| new.contains_key(field) || !old.contains_key(field));
    for (field, value) in new {
        if old.get(field) != Some(value) {
            fields.insert(field.clone(), value.clone());
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn vmi() -> Value {
        json!({
            "metadata": {"uid": "u", "resourceVersion": "7", "labels": {"app": "web"}},
            "spec": {
                "nodeSelector": {"a": "b"},
                "domain": {
                    "cpu": {"sockets": 1, "cores": 2, "threads": 1},
                    "memory": {"guest": "1Gi"},
                    "resources": {"requests": {"memory": "1Gi", "cpu": "200m"}},
                    "devices": {
                        "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "own"}],
                        "interfaces": [{"name": "default", "model": "virtio", "masquerade": {}}],
                    },
                },
                "volumes": [
                    {"name": "root", "containerDisk": {"image": "i", "imagePullPolicy": "Always"}},
                    {"name": "own", "dataVolume": {"name": "own", "hotpluggable": true}},
                ],
                "networks": [{"name": "default", "pod": {}}],
            },
        })
    }

    fn started() -> Value {
        json!({
            "domain": {"devices": {"disks": [{"name": "root", "disk": {}}], "interfaces": [{"name": "default", "masquerade": {}}]}},
            "volumes": [{"name": "root", "containerDisk": {"image": "i"}}],
            "networks": [{"name": "default", "pod": {}}],
        })
    }

    fn check(changes: &[LiveChange], current: &Value, expected: &Expect) {
        let patch = patch(&vmi(), changes, &started(), current).map_or("nothing".to_owned(), |mut it| {
            it["metadata"]
                .as_object_mut()
                .unwrap()
                .retain(|field, _| field == "labels");
            it.to_string()
        });
        expected.assert_eq(&patch);
    }

    #[test]
    fn sizes() {
        let sockets = [LiveChange::Sockets(3)];
        check(
            &sockets,
            &started(),
            &expect![[r#"{"spec":{"domain":{"cpu":{"sockets":3}}},"metadata":{}}"#]],
        );
        let mut said = started();
        said["domain"]["resources"] = json!({"requests": {"cpu": "200m"}});
        check(
            &sockets,
            &said,
            &expect![[
                r#"{"spec":{"domain":{"cpu":{"sockets":3},"resources":{"requests":{"cpu":"600m"}}}},"metadata":{}}"#
            ]],
        );
        check(
            &[LiveChange::Memory("2Gi".to_owned())],
            &started(),
            &expect![[
                r#"{"spec":{"domain":{"memory":{"guest":"2Gi"},"resources":{"requests":{"memory":"2Gi"}}}},"metadata":{}}"#
            ]],
        );
    }

    #[test]
    fn lists_change_item_by_item() {
        let mut current = started();
        current["volumes"] = json!([
            {"name": "root", "containerDisk": {"image": "i"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "d", "hotpluggable": true}},
        ]);
        current["domain"]["devices"]["disks"] =
            json!([{"name": "root", "disk": {}}, {"name": "data", "disk": {"bus": "scsi"}}]);
        let volumes = [LiveChange::Volumes {
            volumes: Value::Null,
            disks: Value::Null,
        }];
        check(
            &volumes,
            &current,
            &expect![[
                r#"{"spec":{"domain":{"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"}},{"name":"own"},{"name":"data","disk":{"bus":"scsi"}}]}},"volumes":[{"name":"root","containerDisk":{"image":"i","imagePullPolicy":"Always"}},{"name":"own","dataVolume":{"name":"own","hotpluggable":true}},{"name":"data","persistentVolumeClaim":{"claimName":"d","hotpluggable":true}}]},"metadata":{}}"#
            ]],
        );
        check(&volumes, &started(), &expect!["nothing"]);
        let mut current = started();
        current["domain"]["devices"]["interfaces"] = json!([
            {"name": "default", "masquerade": {}, "state": "down"}, {"name": "lan", "bridge": {}},
        ]);
        current["networks"] =
            json!([{"name": "default", "pod": {}}, {"name": "lan", "multus": {"networkName": "lan"}}]);
        check(
            &[LiveChange::Interfaces {
                interfaces: Value::Null,
                networks: Value::Null,
            }],
            &current,
            &expect![[
                r#"{"spec":{"domain":{"devices":{"interfaces":[{"name":"default","model":"virtio","masquerade":{},"state":"down"},{"name":"lan","bridge":{}}]}},"networks":[{"name":"default","pod":{}},{"name":"lan","multus":{"networkName":"lan"}}]},"metadata":{}}"#
            ]],
        );
    }

    #[test]
    fn places_and_labels() {
        let placement = |field, value| LiveChange::Placement { field, value };
        check(
            &[
                placement("nodeSelector", Value::Null),
                placement("tolerations", json!([{"key": "k"}])),
            ],
            &started(),
            &expect![[r#"{"spec":{"tolerations":[{"key":"k"}],"nodeSelector":null},"metadata":{}}"#]],
        );
        let metadata = LiveChange::Metadata(json!({
            "labels": {"app": null, "tier": "front"}, "annotations": {"note": "a"},
        }));
        let patch = patch(&vmi(), &[metadata], &started(), &started()).unwrap();
        assert_eq!(patch["metadata"]["labels"], json!({"tier": "front", "app": null}));
        assert_eq!(patch["metadata"]["annotations"], json!({"note": "a"}));
    }
}
