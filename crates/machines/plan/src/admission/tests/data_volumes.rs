//! DataVolumes and DataImportCrons.

use expect_test::expect;
use serde_json::json;

use super::super::{CLAIMS, CLONE_SOURCE_ANNOTATION, DATA_SOURCES, DATA_VOLUMES, MACHINES};
use super::*;

const CRONS: Resource = Resource::new("cdi.kubevirt.io", "dataimportcrons");
const NAMESPACES: Resource = Resource::new("", "namespaces");

fn volume(spec: &str) -> Value {
    let mut volume = json!({"metadata": {"name": "disk", "namespace": "vms"}});
    volume["spec"] = parse(spec);
    volume
}

const ROOM: &str = "storage: {resources: {requests: {storage: 1Gi}}}";

#[test]
fn wrong_volumes_are_refused_in_upstreams_words() {
    let world = Fake::default();
    let specs = [
        "{source: {blank: {}}}".to_owned(),
        format!("{{source: {{blank: {{}}}}, pvc: {{}}, {ROOM}}}"),
        "{source: {blank: {}}, storage: {}}".to_owned(),
        "{source: {blank: {}}, storage: {resources: {requests: {storage: '0'}}}}".to_owned(),
        "{source: {blank: {}}, storage: {resources: {requests: {storage: 1000Ki}}}}".to_owned(),
        "{source: {blank: {}}, pvc: {resources: {requests: {storage: 1Gi}}}}".to_owned(),
        "{source: {blank: {}}, pvc: {accessModes: [ReadWriteOnce, ReadWriteMany], resources: {requests: {storage: 1Gi}}}}".to_owned(),
        "{source: {blank: {}}, pvc: {accessModes: [Often], resources: {requests: {storage: 1Gi}}}}".to_owned(),
        format!("{{{ROOM}}}"),
        format!("{{source: {{}}, {ROOM}}}"),
        format!("{{source: {{blank: {{}}, upload: {{}}}}, {ROOM}}}"),
        format!("{{source: {{http: {{url: ''}}}}, {ROOM}}}"),
        format!("{{source: {{http: {{url: 'ftp://a/b'}}}}, {ROOM}}}"),
        format!("{{source: {{http: {{url: 'a b'}}}}, {ROOM}}}"),
        format!("{{source: {{registry: {{}}}}, {ROOM}}}"),
        format!("{{source: {{registry: {{url: 'quay.io/a'}}}}, {ROOM}}}"),
        format!("{{source: {{registry: {{url: 'http://quay.io/a'}}}}, {ROOM}}}"),
        format!("{{source: {{registry: {{url: 'docker://quay.io/a', pullMethod: walk}}}}, {ROOM}}}"),
        format!("{{source: {{blank: {{}}}}, contentType: archive, {ROOM}}}"),
        format!("{{source: {{blank: {{}}}}, contentType: text, {ROOM}}}"),
        "{source: {pvc: {name: a}}, storage: {}}".to_owned(),
        "{sourceRef: {kind: DataSource}, storage: {}}".to_owned(),
        "{sourceRef: {kind: Pod, name: a}, storage: {}}".to_owned(),
        "{source: {blank: {}}, pvc: {accessModes: [ReadWriteOnce], dataSource: {name: a}, resources: {requests: {storage: 1Gi}}}}".to_owned(),
    ];
    let mut told = String::new();
    for spec in &specs {
        let refusal = match write(DATA_VOLUMES, &request(&world, None, PERSON), &volume(spec)) {
            Ok(_) => panic!("accepted: {spec}"),
            Err(refusal) => refusal,
        };
        let causes: Vec<&str> = refusal.lines().skip(1).map(str::trim).collect();
        told += &match causes.as_slice() {
            [] => format!("{refusal}\n"),
            causes => format!("{}\n", causes.join(" | ")),
        };
    }
    expect![[r#"
        FieldValueInvalid spec.PVC: Missing Data volume PVC
        FieldValueInvalid spec.PVC.Storage: Duplicate storage definition, both target storage and target pvc defined
        FieldValueInvalid spec.Storage.resources.requests.size: Storage size is missing
        FieldValueInvalid spec.Storage.resources.requests.size: Storage size can't be equal or less than zero
        FieldValueInvalid spec.Storage.resources.requests.size: Storage size should be at least 1MiB
        FieldValueInvalid spec.PVC.accessModes: Required value: at least 1 access mode is required
        FieldValueInvalid spec.PVC.accessModes: PVC multiple accessModes
        FieldValueInvalid spec.PVC.accessModes: Unsupported value: "Often": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
        FieldValueInvalid spec.source: Data volume should have either Source or SourceRef, or be externally populated
        FieldValueInvalid spec.source: Missing Data volume source
        FieldValueInvalid spec.source: Multiple Data volume sources
        FieldValueInvalid spec.source.HTTP.url: spec.source source URL is empty
        FieldValueInvalid spec.source.HTTP.url: spec.source Invalid source URL scheme: ftp://a/b
        FieldValueInvalid spec.source.HTTP.url: spec.source Invalid source URL: a b
        FieldValueInvalid spec.source.Registry: Source registry should have either URL or ImageStream
        FieldValueInvalid spec.source.Registry.URL: Illegal registry source URL scheme quay.io/a
        FieldValueInvalid spec.source.Registry.URL: Illegal registry source URL scheme http://quay.io/a
        FieldValueInvalid spec.source.Registry.importMethod: ImportMethod walk is neither pod, node or ""
        FieldValueInvalid spec.contentType: SourceType cannot be blank and the contentType be archive
        FieldValueInvalid spec.contentType: ContentType not one of: kubevirt, archive
        FieldValueInvalid spec.source.PVC: spec.source.PVC source PVC is not valid
        400 datavolume-mutate.cdi.kubevirt.io datasources.cdi.kubevirt.io "" not found
        FieldValueInvalid spec.sourceRef.Kind: Unsupported sourceRef kind Pod, currently only DataSource is supported
        FieldValueInvalid spec.source: External population is incompatible with Source and SourceRef | FieldValueInvalid spec.dataSource.kind: Required value: DataSource kind | FieldValueInvalid spec.dataSource.apiGroup.: Required value: DataSource apiGroup when kind is not 'PersistentVolumeClaim'
    "#]].assert_eq(&told);
    let long = json!({"metadata": {"name": "a".repeat(254), "namespace": "vms"}, "spec": {}});
    expect![[r#"
        422 datavolume-validate.cdi.kubevirt.io Name cannot be longer than 253 characters
          FieldValueInvalid : Name cannot be longer than 253 characters"#]]
    .assert_eq(&refused(DATA_VOLUMES, &request(&world, None, PERSON), &long));
}

#[test]
fn right_volumes_are_accepted() {
    let world = Fake::default();
    for spec in [
        format!("{{source: {{http: {{url: 'https://a.example.com/b.qcow2'}}}}, {ROOM}}}"),
        format!("{{source: {{registry: {{url: 'docker://quay.io/a:1', pullMethod: pod}}}}, {ROOM}}}"),
        format!("{{source: {{upload: {{}}}}, {ROOM}}}"),
        "{source: {pvc: {name: a, namespace: vms}}, storage: {}}".to_owned(),
        "{pvc: {accessModes: [ReadWriteOnce], dataSource: {kind: PersistentVolumeClaim, name: a}, resources: {requests: {storage: 1Gi}}}}".to_owned(),
    ] {
        let answer = write(DATA_VOLUMES, &request(&world, None, PERSON), &volume(&spec));
        assert_eq!(answer.unwrap().1, [""; 0], "{spec}");
    }
    let spec = format!("{{source: {{s3: {{url: 'https://s3.example.com/a'}}}}, {ROOM}}}");
    let (_, warnings) = write(DATA_VOLUMES, &request(&world, None, PERSON), &volume(&spec)).unwrap();
    assert_eq!(
        warnings,
        ["spec.source.s3: disks cannot be filled from such a source; the DataVolume will fail"]
    );
    let spec = format!(
        "{{source: {{registry: {{url: 'docker://quay.io/a:1', pullMethod: node}}}}, priorityClassName: high, {ROOM}}}"
    );
    let (_, warnings) = write(DATA_VOLUMES, &request(&world, None, PERSON), &volume(&spec)).unwrap();
    assert_eq!(
        warnings,
        [
            "spec.source.registry.pullMethod: no effect: Fairway pulls the image itself, in the same way always",
            "spec.priorityClassName: no effect: no pod fills the disk",
        ]
    );
}

#[test]
fn what_fills_a_disk_stays() {
    let world = Fake::default();
    let old = volume(&format!("{{source: {{blank: {{}}}}, {ROOM}}}"));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    write(DATA_VOLUMES, &request(&world, Some(&old), PERSON), &new).unwrap();
    new["spec"]["storage"]["resources"]["requests"]["storage"] = json!("2Gi");
    let refusal = refused(DATA_VOLUMES, &request(&world, Some(&old), PERSON), &new);
    expect![[r#"
        422 datavolume-validate.cdi.kubevirt.io Cannot update DataVolume Spec
          FieldValueDuplicate DataVolume.Spec: Cannot update DataVolume Spec"#]]
    .assert_eq(&refusal);
    let staged = |stages: &str| {
        volume(&format!(
            "{{source: {{vddk: {{url: 'https://a', secretRef: a, uuid: a, backingFile: a, thumbprint: a}}}}, checkpoints: {stages}, {ROOM}}}"
        ))
    };
    let (one, two) = (
        staged("[{current: a, previous: ''}]"),
        staged("[{current: a, previous: ''}, {current: b, previous: a}]"),
    );
    write(DATA_VOLUMES, &request(&world, Some(&one), PERSON), &two).unwrap();
    let gone = Request {
        operation: Operation::Delete,
        ..request(&world, Some(&old), PERSON)
    };
    assert_eq!(
        impact(DATA_VOLUMES, &gone, &old),
        "data loss: the claim and what is on its disk are deleted with it"
    );
}

#[test]
fn a_claim_of_somebody_else_is_not_taken() {
    let claim = |more: &str| format!("{{metadata: {{name: disk, namespace: vms, {more}}}}}");
    let disk = volume(&format!("{{source: {{blank: {{}}}}, {ROOM}}}"));
    for (more, is_free) in [
        ("labels: {}", false),
        (
            "ownerReferences: [{kind: DataVolume, controller: true, name: disk}]",
            true,
        ),
        (
            "ownerReferences: [{kind: StatefulSet, controller: true, name: disk}]",
            false,
        ),
        ("annotations: {cdi.kubevirt.io/storage.populatedFor: disk}", true),
        ("annotations: {cdi.kubevirt.io/allowClaimAdoption: 'true'}", true),
    ] {
        let world = Fake::default().with(CLAIMS, &claim(more));
        let answer = write(DATA_VOLUMES, &request(&world, None, PERSON), &disk);
        assert_eq!(answer.is_ok(), is_free, "{more}: {answer:?}");
        if let Err(refusal) = answer {
            assert!(
                refusal.contains("Destination PVC vms/disk already exists"),
                "{refusal}"
            );
        }
    }
}

#[test]
fn disks_are_copied_for_those_who_may_read_them() {
    let source =
        "{metadata: {name: gold, namespace: images}, spec: {source: {pvc: {name: gold, namespace: images}}}}";
    let world = || {
        Fake::default()
            .with(NAMESPACES, "{metadata: {name: images}}")
            .with(DATA_SOURCES, source)
            .with(MACHINES, "{metadata: {name: web, namespace: vms}, spec: {template: {spec: {volumes: [{name: a, serviceAccount: {serviceAccountName: app}}]}}}}")
            .with_in_root(DATA_SOURCES, "{metadata: {name: tiny, namespace: fairway-images}, spec: {source: {pvc: {name: tiny, namespace: fairway-images}}}}")
    };
    let direct = volume("{source: {pvc: {name: gold, namespace: images}}, storage: {}}");
    let named = volume("{sourceRef: {kind: DataSource, name: gold, namespace: images}, storage: {}}");
    let image = volume("{sourceRef: {kind: DataSource, name: tiny, namespace: fairway-images}, storage: {}}");
    let later = volume("{sourceRef: {kind: DataSource, name: big, namespace: fairway-images}, storage: {}}");
    let missing = volume("{sourceRef: {kind: DataSource, name: iron, namespace: images}, storage: {}}");
    let elsewhere = volume("{source: {pvc: {name: gold, namespace: nowhere}}, storage: {}}");
    let snapshot = volume("{source: {snapshot: {name: s, namespace: images}}, storage: {}}");
    let mut of_machine = named.clone();
    of_machine["metadata"]["ownerReferences"] =
        json!([{"kind": "VirtualMachine", "name": "web", "controller": true}]);
    let mut filled = named.clone();
    filled["metadata"]["annotations"] = json!({"cdi.kubevirt.io/storage.prePopulated": "disk"});
    let right = "asker create datavolumes/source images";
    let cases = [
        ("nobody", &direct, world(), PERSON),
        ("who may", &direct, world().with_right(right), PERSON),
        (
            "who may run pods there",
            &named,
            world().with_right("asker create pods images"),
            PERSON,
        ),
        ("nobody, by name", &named, world(), PERSON),
        ("an image", &image, world(), PERSON),
        ("an image to come", &later, world(), PERSON),
        ("nothing", &missing, world().with_right(right), PERSON),
        ("no namespace", &elsewhere, world().with_right(right), PERSON),
        (
            "a machine without the right",
            &of_machine,
            world().with_right(right),
            ENGINE,
        ),
        (
            "a machine with the right",
            &of_machine,
            world().with_right("app create datavolumes/source images"),
            ENGINE,
        ),
        (
            "a snapshot, with half of the rights",
            &snapshot,
            world().with_right("asker create pods images"),
            PERSON,
        ),
        ("one that is filled", &filled, world(), PERSON),
    ];
    let mut told = String::new();
    for (what, disk, world, user) in cases {
        let answer = match write(DATA_VOLUMES, &request(&world, None, user), disk) {
            Ok((written, warnings)) => {
                let noted = &written["metadata"]["annotations"][CLONE_SOURCE_ANNOTATION];
                format!("yes {} {}", noted.as_str().unwrap_or("-"), warnings.join(" "))
            }
            Err(refusal) => refusal.lines().next().unwrap().to_owned(),
        };
        told += &format!("{what}: {}\n", answer.trim());
    }
    expect![[r#"
        nobody: 422 datavolume-mutate.cdi.kubevirt.io User somebody has insufficient permissions in clone source namespace images
        who may: yes images/gold
        who may run pods there: yes images/gold
        nobody, by name: 422 datavolume-mutate.cdi.kubevirt.io User somebody has insufficient permissions in clone source namespace images
        an image: yes -
        an image to come: yes - spec.sourceRef: there is no image big in fairway-images yet; the disk waits for it
        nothing: 400 datavolume-mutate.cdi.kubevirt.io datasources.cdi.kubevirt.io "iron" not found
        no namespace: 400 datavolume-mutate.cdi.kubevirt.io namespaces "nowhere" not found
        a machine without the right: 422 datavolume-mutate.cdi.kubevirt.io User system:serviceaccount:vms:app has insufficient permissions in clone source namespace images
        a machine with the right: yes images/gold
        a snapshot, with half of the rights: 422 datavolume-mutate.cdi.kubevirt.io User somebody has insufficient permissions in clone source namespace images
        one that is filled: yes -
    "#]].assert_eq(&told);
}

#[test]
fn what_may_be_copied_is_noted_by_nobody_else() {
    let world = Fake::default();
    let note = |object: &Value| object["metadata"]["annotations"][CLONE_SOURCE_ANNOTATION].clone();
    let mut disk = volume(&format!("{{source: {{blank: {{}}}}, {ROOM}}}"));
    disk["metadata"]["annotations"] = json!({CLONE_SOURCE_ANNOTATION: "images/gold"});
    let (written, _) = write(DATA_VOLUMES, &request(&world, None, PERSON), &disk).unwrap();
    assert_eq!(note(&written), Value::Null);
    // Once it is noted it stays, although the source may be gone by now.
    let mut old = volume("{sourceRef: {kind: DataSource, name: gold, namespace: images}, storage: {}}");
    old["metadata"]["annotations"] = json!({CLONE_SOURCE_ANNOTATION: "images/gold"});
    for annotations in [json!({}), json!({CLONE_SOURCE_ANNOTATION: "images/other"})] {
        let mut new = old.clone();
        new["metadata"]["annotations"] = annotations;
        let (written, _) = write(DATA_VOLUMES, &request(&world, Some(&old), PERSON), &new).unwrap();
        assert_eq!(note(&written), "images/gold");
    }
}

#[test]
fn crons() {
    let world = Fake::default();
    let cron = |more: &str| {
        let mut cron = parse(
            "
metadata: {name: images, namespace: vms}
spec:
  schedule: 0 2 * * *
  managedDataSource: fedora
  template: {spec: {source: {registry: {url: 'docker://quay.io/a'}}, storage: {resources: {requests: {storage: 5Gi}}}}}
",
        );
        if let Some(spec) = parse(more).as_object() {
            for (key, value) in spec {
                cron["spec"][key] = value.clone();
            }
        }
        cron
    };
    let mut told = String::new();
    for more in [
        "{}",
        "{schedule: often}",
        "{managedDataSource: ''}",
        "{importsToKeep: -1}",
        "{garbageCollect: Sometimes}",
        "{template: {spec: {source: {http: {url: 'http://a'}}}}}",
        "{template: {spec: {source: {registry: {url: 'docker://a'}}, contentType: kubevirt}}}",
        "{template: {spec: {source: {registry: {url: 'docker://a'}}}}}",
    ] {
        let answer = match write(CRONS, &request(&world, None, PERSON), &cron(more)) {
            Ok(_) => "yes".to_owned(),
            Err(refusal) => refusal.lines().nth(1).unwrap().trim().to_owned(),
        };
        told += &format!("{more}: {answer}\n");
    }
    let (old, new) = (cron("{}"), cron("{schedule: 0 3 * * *}"));
    told += &refused(CRONS, &request(&world, Some(&old), PERSON), &new);
    expect![[r#"
        {}: yes
        {schedule: often}: FieldValueInvalid spec.Schedule: Illegal cron schedule
        {managedDataSource: ''}: FieldValueInvalid spec.ManagedDataSource: Illegal ManagedDataSource value
        {importsToKeep: -1}: FieldValueInvalid spec.ImportsToKeep: Illegal ImportsToKeep value
        {garbageCollect: Sometimes}: FieldValueInvalid spec.GarbageCollect: Illegal GarbageCollect value
        {template: {spec: {source: {http: {url: 'http://a'}}}}}: FieldValueInvalid spec.Template: Missing registry source
        {template: {spec: {source: {registry: {url: 'docker://a'}}, contentType: kubevirt}}}: FieldValueInvalid spec.Template: Unsettable fields: SourceRef, ContentType, Checkpoints, FinalCheckpoint
        {template: {spec: {source: {registry: {url: 'docker://a'}}}}}: FieldValueInvalid Template.PVC: Missing Data volume PVC
        422 dataimportcron-validate.cdi.kubevirt.io Cannot update DataImportCron Spec
          FieldValueDuplicate DataImportCron.Spec: Cannot update DataImportCron Spec"#]].assert_eq(&told);
}
