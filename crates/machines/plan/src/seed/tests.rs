//! What guests are told, by examples.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::plan::{Capabilities, Origin, plan};
use crate::settings::Settings;
use crate::view;

/// A machine with one volume, and what it needs.
fn machine(volume: &Value, spec: &Value) -> VirtualMachineInstance {
    let mut vmi = json!({
        "metadata": {
            "name": "web", "namespace": "user-vms", "uid": "u-1",
            "labels": {"app": "web", "tier": "a\"b"},
            "annotations": {"kubevirt.io/instancetype-name": "u1.small"},
        },
        "spec": {"domain": {"devices": {"disks": [{"name": "seed", "disk": {"bus": "virtio"}}]}}, "volumes": [volume]},
    });
    for (key, value) in spec.as_object().unwrap() {
        vmi["spec"][key] = value.clone();
    }
    view::read("VirtualMachineInstance", &vmi).unwrap()
}

fn objects() -> Objects {
    let mut objects = Objects::default();
    let all = [
        (
            Reference::Secret("init".into()),
            json!({"kind": "Secret", "data": {"userdata": "I2Nsb3VkLWNvbmZpZwo="}}),
        ),
        (
            Reference::Secret("net".into()),
            json!({"kind": "Secret", "data": {"networkData": "dmVyc2lvbjogMg=="}}),
        ),
        (
            Reference::Secret("keys".into()),
            json!({"kind": "Secret", "data": {"b": "c3NoLWVkMjU1MTkgQg==", "a": "c3NoLWVkMjU1MTkgQQ==", "c": ""}}),
        ),
        (
            Reference::ConfigMap("app".into()),
            json!({"kind": "ConfigMap", "data": {"app.conf": "x=1\n"}, "binaryData": {"blob": "AAEC"}}),
        ),
        (
            Reference::ConfigMap("windows".into()),
            json!({"kind": "ConfigMap", "data": {"Unattend.XML": "<a/>"}}),
        ),
        (
            Reference::ServiceAccount("robot".into()),
            json!({"data": {"token": "t", "namespace": "user-vms"}}),
        ),
    ];
    for (reference, object) in all {
        objects.add(reference, &object).unwrap();
    }
    objects
}

fn check(volume: &Value, spec: &Value, expected: &Expect) {
    let vmi = machine(volume, spec);
    let planned = plan(
        &vmi,
        Origin::default(),
        &Capabilities::default(),
        &Settings::default(),
    );
    let card = TaggedCard {
        pci_address: "0000:01:00.0".into(),
        mac: "02:00:00:00:00:01".into(),
        tag: "front".into(),
    };
    let shown = match disk(&vmi, &planned, "seed", &objects(), &[card]) {
        Ok(found) => {
            let files = found
                .files
                .iter()
                .map(|it| format!("{}: {:?}\n", it.path, String::from_utf8_lossy(&it.content)));
            format!("label {}\n{}", found.label, files.collect::<String>())
        }
        Err(error) => format!("error: {error}\n"),
    };
    expected.assert_eq(&shown);
}

fn key(way: &str) -> Value {
    json!({"accessCredentials": [{"sshPublicKey": {
        "source": {"secret": {"secretName": "keys"}}, "propagationMethod": {way: {}},
    }}]})
}

#[test]
fn no_cloud() {
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\n", "networkDataBase64": "dmVyc2lvbjogMQ=="}}),
        &key("noCloud"),
        &expect![[r##"
            label cidata
            meta-data: "{\"instance-type\":\"u1.small\",\"instance-id\":\"d32ff544-f682-571b-8677-3762f07ab8a4\",\"local-hostname\":\"web\",\"public-keys\":{\"0\":\"ssh-ed25519 A\",\"1\":\"ssh-ed25519 B\"}}"
            user-data: "#cloud-config\n"
            network-config: "version: 1"
        "##]],
    );
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "init"}, "networkDataSecretRef": {"name": "net"}}}),
        &json!({"hostname": "front"}),
        &expect![[r##"
            label cidata
            meta-data: "{\"instance-type\":\"u1.small\",\"instance-id\":\"d32ff544-f682-571b-8677-3762f07ab8a4\",\"local-hostname\":\"front\"}"
            user-data: "#cloud-config\n"
            network-config: "version: 2"
        "##]],
    );
}

#[test]
fn config_drive() {
    check(
        &json!({"name": "seed", "cloudInitConfigDrive": {"userDataBase64": "I2Nsb3VkLWNvbmZpZwo=", "networkData": "{}"}}),
        &key("configDrive"),
        &expect![[r##"
            label config-2
            openstack/latest/meta_data.json: "{\"instance_type\":\"u1.small\",\"instance_id\":\"web.user-vms\",\"hostname\":\"web\",\"uuid\":\"d32ff544-f682-571b-8677-3762f07ab8a4\",\"devices\":[{\"type\":\"nic\",\"bus\":\"pci\",\"address\":\"0000:01:00.0\",\"mac\":\"02:00:00:00:00:01\",\"tags\":[\"front\"]}],\"public_keys\":{\"0\":\"ssh-ed25519 A\",\"1\":\"ssh-ed25519 B\"}}"
            openstack/latest/user_data: "#cloud-config\n"
            openstack/latest/network_data.json: "{}"
        "##]],
    );
}

#[test]
fn files_of_objects() {
    check(
        &json!({"name": "seed", "configMap": {"name": "app", "volumeLabel": "conf"}}),
        &json!({}),
        &expect![[r#"
            label conf
            app.conf: "x=1\n"
            blob: "\0\u{1}\u{2}"
        "#]],
    );
    check(
        &json!({"name": "seed", "secret": {"secretName": "init"}}),
        &json!({}),
        &expect![[r##"
            label cfgdata
            userdata: "#cloud-config\n"
        "##]],
    );
    check(
        &json!({"name": "seed", "secret": {"secretName": "none", "optional": true}}),
        &json!({}),
        &expect![[r#"
            label cfgdata
        "#]],
    );
    check(
        &json!({"name": "seed", "serviceAccount": {"serviceAccountName": "robot"}}),
        &json!({}),
        &expect![[r#"
            label cfgdata
            namespace: "user-vms"
            token: "t"
        "#]],
    );
    check(
        &json!({"name": "seed", "sysprep": {"configMap": {"name": "windows"}}}),
        &json!({}),
        &expect![[r#"
            label unattendCD
            Unattend.XML: "<a/>"
        "#]],
    );
    let fields = json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
    ]);
    check(
        &json!({"name": "seed", "downwardAPI": {"fields": fields}}),
        &json!({}),
        &expect![[r#"
            label cfgdata
            labels: "app=\"web\"\ntier=\"a\\\"b\""
            app: "web"
            name: "web"
        "#]],
    );
}

#[test]
fn what_is_missing_is_named() {
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "none"}}}),
        &json!({}),
        &expect![[r#"
            error: volume "seed" needs Secret "none", which does not exist; create it, or correct its name
        "#]],
    );
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "net"}}}),
        &json!({}),
        &expect![[r#"
            error: no cloud-init data-source found at volume: seed (Secret "net" has none of the keys userdata, userData)
        "#]],
    );
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {"userDataBase64": "%"}}),
        &json!({}),
        &expect![[r#"
            error: userDataBase64 of volume "seed" is not base64
        "#]],
    );
    check(
        &json!({"name": "seed", "cloudInitNoCloud": {}}),
        &json!({}),
        &expect![[r#"
            error: volume "seed": userDataBase64, userData, networkDataBase64 or networkData is required for a cloud-init data source
        "#]],
    );
    check(
        &json!({"name": "seed", "configMap": {"name": "none"}}),
        &json!({}),
        &expect![[r#"
            error: volume "seed" needs ConfigMap "none", which does not exist; create it, or correct its name
        "#]],
    );
    check(
        &json!({"name": "seed", "sysprep": {"configMap": {"name": "app"}}}),
        &json!({}),
        &expect![[r#"
            error: volume "seed": Sysprep drive should contain autounattend.xml or unattend.xml but neither were found.
        "#]],
    );
    let fields = json!([{"path": "x", "fieldRef": {"fieldPath": "status.podIP"}}]);
    check(
        &json!({"name": "seed", "downwardAPI": {"fields": fields}}),
        &json!({}),
        &expect![[r#"
            error: volume "seed": there is no field "status.podIP" to tell the guest; metadata's can be told
        "#]],
    );
    check(
        &json!({"name": "seed", "emptyDisk": {"capacity": "1Gi"}}),
        &json!({}),
        &expect![[r#"
            error: disk "seed" is not made of files
        "#]],
    );
    let refused = objects().add(
        Reference::Secret("bad".into()),
        &json!({"kind": "Secret", "data": {"k": "%"}}),
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "key \"k\" of Secret \"bad\" is not base64"
    );
}

#[test]
fn all_references_are_known_beforehand() {
    let vmi = machine(
        &json!({"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "init"}, "networkDataSecretRef": {"name": "net"}}}),
        &json!({
            "accessCredentials": [
                {"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {"noCloud": {}}}},
                {"userPassword": {"source": {"secret": {"secretName": "pw"}}, "propagationMethod": {"qemuGuestAgent": {}}}},
            ],
        }),
    );
    let expected = ["init", "keys", "net", "pw"].map(|it| Reference::Secret(it.to_owned()));
    assert_eq!(references(&vmi), BTreeSet::from(expected));
}
