//! VirtualMachineInstances and their migrations.

use expect_test::expect;
use serde_json::json;

use super::super::INSTANCES;
use super::*;

const MIGRATIONS: Resource = Resource::new("kubevirt.io", "virtualmachineinstancemigrations");
const WIRING: &str = "system:serviceaccount:kube-system:fairway-machines-wiring";

fn instance() -> Value {
    parse(
        "
metadata: {name: web, namespace: vms, annotations: {fairway.dev/address: 10.88.0.9, a: b}}
spec:
  domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}, memory: {guest: 1Gi}}
  volumes: [{name: root, persistentVolumeClaim: {claimName: root}}]
status: {nodeName: theirs, phase: Running}
",
    )
}

/// An instance as the control plane left it.
fn stored() -> Value {
    let world = Fake::default();
    let (mut vmi, _) = write(INSTANCES, &request(&world, None, ENGINE), &instance()).unwrap();
    vmi["status"]["volumeStatus"] = json!([{"name": "root", "target": "vda"}]);
    vmi["metadata"]["annotations"]["fairway.dev/address"] = json!("10.88.0.2");
    vmi
}

#[test]
fn an_instance_begins_pending_and_is_kept() {
    let world = Fake::default();
    let (vmi, warnings) = write(INSTANCES, &request(&world, None, PERSON), &instance()).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        vmi["metadata"]["finalizers"],
        json!(["foregroundDeleteVirtualMachine"])
    );
    assert_eq!(
        vmi["metadata"]["annotations"],
        json!({"a": "b"}),
        "the address is not its author's"
    );
    expect![[r#"
        {
          "currentCPUTopology": {
            "sockets": 1,
            "cores": 1,
            "threads": 1
          },
          "memory": {
            "guestAtBoot": "1Gi",
            "guestCurrent": "1Gi",
            "guestRequested": "1Gi"
          },
          "phase": "Pending",
          "phaseTransitionTimestamps": [
            {
              "phase": "Pending",
              "phaseTransitionTimestamp": "2026-11-17T12:00:00Z"
            }
          ]
        }
    "#]]
    .assert_eq(&format!("{:#}\n", vmi["status"]));
    assert_eq!(vmi["spec"]["domain"]["cpu"]["sockets"], 1);
    assert_eq!(vmi["spec"]["networks"], json!([{"name": "default", "pod": {}}]));
    let again = write(INSTANCES, &request(&world, Some(&vmi), ENGINE), &vmi)
        .unwrap()
        .0;
    assert_eq!(again, vmi, "nothing happens twice");
}

#[test]
fn wrong_instances_are_refused() {
    let world = Fake::default();
    let mut vmi = instance();
    vmi["spec"]["volumes"] = json!([]);
    vmi["metadata"]["labels"] = json!({"kubevirt.io/nodeName": "a"});
    expect![[r#"
        422 virtualmachineinstances-create-validator.kubevirt.io spec.domain.devices.disks[0].Name 'root' not found., creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited
          FieldValueInvalid spec.domain.devices.disks[0].name: spec.domain.devices.disks[0].Name 'root' not found.
          FieldValueNotSupported metadata.labels: creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited"#]].assert_eq(&refused(INSTANCES, &request(&world, None, PERSON), &vmi));
}

#[test]
fn a_spec_stays_and_a_status_is_the_control_planes() {
    let world = Fake::default();
    let old = stored();
    let person = |new: &Value| write(INSTANCES, &request(&world, Some(&old), PERSON), new);
    let changed = |pointer: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        new
    };
    // What others write to the status, and to the address, has no effect.
    let (kept, _) = person(&changed("/status/phase", json!("Succeeded"))).unwrap();
    assert_eq!(kept, old);
    let address = changed("/metadata/annotations/fairway.dev~1address", json!("10.88.0.77"));
    assert_eq!(person(&address).unwrap().0, old);
    for user in [ENGINE, WIRING] {
        let (new, _) = write(INSTANCES, &request(&world, Some(&old), user), &address).unwrap();
        assert_eq!(new == address, user == WIRING, "{user}");
    }
    // A user of the same name in a workspace of his own is nobody here.
    let local = Request {
        is_local_user: true,
        ..request(&world, Some(&old), WIRING)
    };
    assert_eq!(write(INSTANCES, &local, &address).unwrap().0, old);
    let phase = changed("/status/phase", json!("Scheduled"));
    let (new, _) = write(INSTANCES, &request(&world, Some(&old), ENGINE), &phase).unwrap();
    assert_eq!(new["status"]["phase"], "Scheduled");
    let refusal = person(&changed("/spec/domain/memory/guest", json!("2Gi"))).unwrap_err();
    expect![[r#"
        422 virtualmachineinstances-update-validator.kubevirt.io update of VMI object is restricted
          FieldValueNotSupported : update of VMI object is restricted"#]]
    .assert_eq(&refusal);
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"kubevirt.io/nodeName": "a", "app": "web"});
    expect![[r#"
        422 virtualmachineinstances-update-validator.kubevirt.io modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited
          FieldValueNotSupported : modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited"#]].assert_eq(&person(&labelled).unwrap_err());
    labelled["metadata"]["labels"] = json!({"app": "web"});
    person(&labelled).unwrap();
}

#[test]
fn the_control_plane_changes_what_can_change_while_a_guest_runs() {
    let world = Fake::default();
    let old = stored();
    let volume = |name: &str, source: &str| json!({"name": name, source: {"name": name, "claimName": name}});
    let disk = |name: &str, bus: &str| json!({"name": name, "disk": {"bus": bus}});
    let with = |volumes: Value, disks: Value| {
        let mut new = old.clone();
        new["spec"]["volumes"] = volumes;
        new["spec"]["domain"]["devices"]["disks"] = disks;
        new
    };
    let (root, root_disk) = (
        old["spec"]["volumes"][0].clone(),
        old["spec"]["domain"]["devices"]["disks"][0].clone(),
    );
    let mut sockets = old.clone();
    sockets["spec"]["domain"]["cpu"]["sockets"] = json!(2);
    let mut most = old.clone();
    most["spec"]["domain"]["cpu"]["maxSockets"] = json!(9);
    let mut memory = old.clone();
    memory["spec"]["domain"]["memory"]["maxGuest"] = json!("64Gi");
    let cases = [
        ("more sockets", sockets),
        ("room for more sockets", most),
        ("room for more memory", memory),
        (
            "a volume comes",
            with(
                json!([root, volume("data", "dataVolume")]),
                json!([root_disk, disk("data", "scsi")]),
            ),
        ),
        (
            "a volume comes without a disk",
            with(json!([root, volume("data", "dataVolume")]), json!([root_disk])),
        ),
        (
            "a volume comes on another bus",
            with(
                json!([root, volume("data", "dataVolume")]),
                json!([root_disk, disk("data", "virtio")]),
            ),
        ),
        (
            "a volume of another kind comes",
            with(
                json!([root, {"name": "data", "emptyDisk": {"capacity": "1Gi"}}]),
                json!([root_disk, disk("data", "scsi")]),
            ),
        ),
        ("the first volume goes", with(json!([]), json!([]))),
        (
            "the first volume changes",
            with(json!([volume("root", "dataVolume")]), json!([root_disk])),
        ),
        (
            "the first disk changes",
            with(json!([root]), json!([disk("root", "sata")])),
        ),
    ];
    let mut told = String::new();
    for (what, new) in cases {
        let answer = match write(INSTANCES, &request(&world, Some(&old), ENGINE), &new) {
            Ok(_) => "yes".to_owned(),
            Err(refusal) => refusal.lines().next().unwrap().to_owned(),
        };
        told += &format!("{what}: {answer}\n");
    }
    expect![[r#"
        more sockets: yes
        room for more sockets: 422 virtualmachineinstances-update-validator.kubevirt.io CPU topology maxSockets changed
        room for more memory: 422 virtualmachineinstances-update-validator.kubevirt.io Memory maxGuest changed
        a volume comes: yes
        a volume comes without a disk: 422 virtualmachineinstances-update-validator.kubevirt.io number of disks and filesystems (1) does not equal the number of volumes (2)
        a volume comes on another bus: 422 virtualmachineinstances-update-validator.kubevirt.io hotplugged Disk data does not use a scsi bus
        a volume of another kind comes: 422 virtualmachineinstances-update-validator.kubevirt.io volume data is not a PVC or DataVolume
        the first volume goes: 422 virtualmachineinstances-update-validator.kubevirt.io Number of permanent volumes has changed
        the first volume changes: 422 virtualmachineinstances-update-validator.kubevirt.io permanent volume root, changed
        the first disk changes: 422 virtualmachineinstances-update-validator.kubevirt.io permanent disk root, changed
    "#]].assert_eq(&told);
}

#[test]
fn machines_move_one_at_a_time() {
    let web = "{metadata: {name: web, namespace: vms}, status: {phase: Running}}";
    let migration = parse("{metadata: {name: m, namespace: vms}, spec: {vmiName: web}}");
    let cases = [
        ("a machine that runs", Fake::default().with(INSTANCES, web)),
        ("none", Fake::default()),
        (
            "one that ended",
            Fake::default().with(INSTANCES, "{metadata: {name: web, namespace: vms}, status: {phase: Failed}}"),
        ),
        (
            "one that cannot",
            Fake::default().with(
                INSTANCES,
                "{metadata: {name: web, namespace: vms}, status: {conditions: [{type: LiveMigratable, status: 'False', reason: DisksNotLiveMigratable, message: it has a disk here}]}}",
            ),
        ),
        (
            "one that moves",
            Fake::default()
                .with(INSTANCES, web)
                .with(MIGRATIONS, "{metadata: {name: a, namespace: vms, uid: u1, labels: {kubevirt.io/vmi-name: web}}, spec: {vmiName: web}}"),
        ),
        (
            "one that moved",
            Fake::default()
                .with(INSTANCES, web)
                .with(MIGRATIONS, "{metadata: {name: a, namespace: vms, labels: {kubevirt.io/vmi-name: web}}, spec: {vmiName: web}, status: {phase: Succeeded}}"),
        ),
    ];
    let mut told = String::new();
    for (what, world) in cases {
        let answer = match write(MIGRATIONS, &request(&world, None, PERSON), &migration) {
            Ok((object, _)) => object["metadata"].to_string(),
            Err(refusal) => refusal,
        };
        told += &format!("{what}: {answer}\n");
    }
    expect![[r#"
        a machine that runs: {"name":"m","namespace":"vms","labels":{"kubevirt.io/vmi-name":"web"},"finalizers":["kubevirt.io/migrationJobFinalize"]}
        none: 400 migration-create-validator.kubevirt.io the VMI "vms/web" does not exist
        one that ended: 400 migration-create-validator.kubevirt.io Cannot migrate VMI in finalized state.
        one that cannot: 400 migration-create-validator.kubevirt.io Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: it has a disk here
        one that moves: 400 migration-create-validator.kubevirt.io in-flight migration detected. Active migration job (u1) is currently already in progress for VMI web.
        one that moved: {"name":"m","namespace":"vms","labels":{"kubevirt.io/vmi-name":"web"},"finalizers":["kubevirt.io/migrationJobFinalize"]}
    "#]].assert_eq(&told);
    let world = Fake::default().with(INSTANCES, web);
    let (old, _) = write(MIGRATIONS, &request(&world, None, PERSON), &migration).unwrap();
    let mut new = old.clone();
    new["spec"]["vmiName"] = json!("other");
    let refusal = refused(MIGRATIONS, &request(&world, Some(&old), PERSON), &new);
    assert!(
        refusal.contains("update of Migration object's spec is restricted"),
        "{refusal}"
    );
    let mut new = old.clone();
    new["metadata"]["labels"]["kubevirt.io/vmi-name"] = json!("other");
    let refusal = refused(MIGRATIONS, &request(&world, Some(&old), PERSON), &new);
    assert!(
        refusal.contains("can't be modified on an in-flight migration"),
        "{refusal}"
    );
    assert_eq!(
        impact(MIGRATIONS, &request(&world, None, PERSON), &migration),
        "migration: web moves to another node, and goes on running"
    );
}
