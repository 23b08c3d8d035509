//! Changes and what they cost.

mod happens;

use super::*;
use fairway_text_yaml as yaml;

fn object(text: &str) -> Value {
    yaml::from_str(text, yaml::Limits::default()).unwrap()
}

const PERSISTENT: &str = "
spec:
  runStrategy: Always
  dataVolumeTemplates: [{metadata: {name: root}, spec: {source: {registry: {url: a}}, storage: {resources: {requests: {storage: 1Gi}}}}}]
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {zone: a}
      domain:
        cpu: {sockets: 2, cores: 1, maxSockets: 4}
        memory: {guest: 2Gi, maxGuest: 4Gi}
        devices: {disks: [{name: root, disk: {bus: virtio}}], interfaces: [{name: default, masquerade: {}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, dataVolume: {name: root}}]
";

/// What is replaced by what, the impact, and the worst reason.
type Row<'r> = (&'r [(&'r str, &'r str)], &'r str, &'r str);

fn verdict(replace: &[(&str, &str)], running: bool) -> (String, Vec<String>) {
    let before = object(PERSISTENT);
    let mut text = PERSISTENT.to_owned();
    for (from, to) in replace {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let after = object(&text);
    let change = Change {
        before: Some(&before),
        after: Some(&after),
        running,
    };
    let verdict = of(change, &Settings::default());
    (
        verdict.impact.to_string(),
        verdict.reasons.into_iter().map(|(_, why)| why).collect(),
    )
}

#[test]
fn changes_of_a_running_machine() {
    let disks = "{disks: [{name: root, disk: {bus: virtio}}]";
    let table: [Row; 13] = [
        (&[], "none", ""),
        (
            &[("app: web", "app: shop")],
            "live change",
            "labels and annotations of the instance change",
        ),
        (
            &[("sockets: 2", "sockets: 3")],
            "live change",
            "sockets grow from 2 to 3",
        ),
        (
            &[("sockets: 2", "sockets: 1")],
            "restart",
            "Reduction of CPU socket count requires a restart",
        ),
        (
            &[("sockets: 2", "sockets: 5")],
            "restart",
            "CPU sockets updated in template spec to a value higher than what's available",
        ),
        (
            &[("cores: 1", "cores: 2")],
            "restart",
            "spec.template.spec.domain.cpu.cores takes effect at the next start",
        ),
        (
            &[("guest: 2Gi", "guest: 3Gi")],
            "live change",
            "memory grows from 2Gi to 3Gi",
        ),
        (
            &[("guest: 2Gi", "guest: 1Gi")],
            "restart",
            "memory updated in template spec to a value lower than what the VM started with",
        ),
        (
            &[("zone: a", "zone: b")],
            "migration",
            "spec.template.spec.nodeSelector: the machine moves if its node does not suit",
        ),
        (
            &[(disks, "{disks: [{name: root, disk: {bus: scsi}}]")],
            "restart",
            "spec.template.spec.domain.devices.disks takes effect at the next start",
        ),
        (
            &[
                (
                    disks,
                    "{disks: [{name: root, disk: {bus: virtio}}, {name: more, disk: {bus: scsi}}]",
                ),
                (
                    "dataVolume: {name: root}}]",
                    "dataVolume: {name: root}}, {name: more, dataVolume: {name: more, hotpluggable: true}}]",
                ),
            ],
            "live change",
            "volumes come or go",
        ),
        (
            &[("storage: 1Gi", "storage: 2Gi")],
            "live change",
            "DataVolume root is resized",
        ),
        (
            &[("runStrategy: Always", "runStrategy: Halted")],
            "restart",
            "the machine is stopped",
        ),
    ];
    for (change, impact, reason) in table {
        let (found, reasons) = verdict(change, true);
        assert_eq!(
            (found.as_str(), reasons.first().map_or("", String::as_str)),
            (impact, reason),
            "{change:?}"
        );
    }
}

#[test]
fn a_machine_that_is_stopped_notices_nothing() {
    assert_eq!(verdict(&[("cores: 1", "cores: 2")], false).0, "none");
    let (impact, reasons) = verdict(&[("url: a", "url: b")], false);
    assert_eq!(impact, "re-creation");
    assert_eq!(
        reasons,
        ["DataVolume root has its content already; delete it to have it made again"]
    );
}

#[test]
fn a_restart_throws_away_what_is_not_kept() {
    let before = object(&PERSISTENT.replace("dataVolume: {name: root}}]", "containerDisk: {image: i}}]"));
    let mut after = before.clone();
    after["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] = json!(2);
    let change = |after| Change {
        before: Some(&before),
        after,
        running: true,
    };
    let found = of(change(Some(&after)), &Settings::default());
    assert_eq!(found.impact, Impact::DataLoss);
    assert_eq!(
        found.reasons[0].1,
        "what the guest wrote to volume root is thrown away by the restart"
    );
    assert_eq!(found.reasons[1].0, Impact::Restart);
    let gone = of(change(None), &Settings::default());
    assert_eq!(gone.impact, Impact::DataLoss);
    assert_eq!(gone.reasons.len(), 3);
    let new = Change {
        before: None,
        after: Some(&after),
        running: false,
    };
    assert_eq!(of(new, &Settings::default()), Verdict::default());
}
