//! Changes of a machine that runs.

use expect_test::expect;

use super::play;

#[test]
fn changes_while_it_runs() {
    play(
        "
        strategy Always
        sync
        phase Running
        sync
        template {spec: {domain: {cpu: {sockets: 2}}}}
        sync
        sync
        template {spec: {domain: {memory: {guest: 2Gi}}}, metadata: {labels: {tier: front}}}
        sync
        template {metadata: {labels: {tier: null}, annotations: {note: a}}}
        sync
        sync
        template {spec: {nodeSelector: {zone: a}}}
        sync
        sync
        template {spec: {domain: {devices: {disks: [{name: root, disk: {bus: virtio}}, {name: more, disk: {bus: scsi}}]}}, volumes: [{name: root, dataVolume: {name: root}}, {name: more, dataVolume: {name: more, hotpluggable: true}}]}}
        sync
        sync
        template {spec: {domain: {cpu: {sockets: 8}}}}
        sync
        template {spec: {domain: {cpu: {sockets: 2}}}}
        sync
        template {spec: {domain: {cpu: {cores: 2}}}}
        sync
        template {spec: {domain: {memory: {guest: 3Gi}}}}
        sync
        template {spec: {domain: {cpu: {cores: 1}}}}
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > template {spec: {domain: {cpu: {sockets: 2}}}}
            > sync
              UpdateInstance([Sockets(2)])
              Running Ready=True
            > sync
              Running Ready=True
            > template {spec: {domain: {memory: {guest: 2Gi}}}, metadata: {labels: {tier: front}}}
            > sync
              UpdateInstance([Metadata(Object {"labels": Object {"tier": String("front")}, "annotations": Object {"fairway.dev/from-template": String("{\"labels\":[\"app\",\"tier\"],\"annotations\":[]}")}}), Memory("2Gi")])
              Running Ready=True
            > template {metadata: {labels: {tier: null}, annotations: {note: a}}}
            > sync
              UpdateInstance([Metadata(Object {"labels": Object {"tier": Null}, "annotations": Object {"note": String("a"), "fairway.dev/from-template": String("{\"labels\":[\"app\"],\"annotations\":[\"note\"]}")}})])
              Running Ready=True
            > sync
              Running Ready=True
            > template {spec: {nodeSelector: {zone: a}}}
            > sync
              UpdateInstance([Placement { field: "nodeSelector", value: Object {"zone": String("a")} }])
              Running Ready=True
            > sync
              Running Ready=True
            > template {spec: {domain: {devices: {disks: [{name: root, disk: {bus: virtio}}, {name: more, disk: {bus: scsi}}]}}, volumes: [{name: root, dataVolume: {name: root}}, {name: more, dataVolume: {name: more, hotpluggable: true}}]}}
            > sync
              UpdateInstance([Volumes { volumes: Array [Object {"name": String("root"), "dataVolume": Object {"name": String("root")}}, Object {"name": String("more"), "dataVolume": Object {"name": String("more"), "hotpluggable": Bool(true)}}], disks: Array [Object {"name": String("root"), "disk": Object {"bus": String("virtio")}}, Object {"name": String("more"), "disk": Object {"bus": String("scsi")}}] }])
              Running Ready=True
            > sync
              Running Ready=True
            > template {spec: {domain: {cpu: {sockets: 8}}}}
            > sync
              Running Ready=True RestartRequired=True (CPU sockets updated in template spec to a value higher than what's available)
            > template {spec: {domain: {cpu: {sockets: 2}}}}
            > sync
              Running Ready=True
            > template {spec: {domain: {cpu: {cores: 2}}}}
            > sync
              Running Ready=True RestartRequired=True (a non-live-updatable field was changed in the template spec)
            > template {spec: {domain: {memory: {guest: 3Gi}}}}
            > sync
              Running Ready=True RestartRequired=True (a non-live-updatable field was changed in the template spec)
            > template {spec: {domain: {cpu: {cores: 1}}}}
            > sync
              UpdateInstance([Memory("3Gi")])
              Running Ready=True
        "#]],
    );
}

#[test]
fn a_change_from_git_restarts() {
    play(
        "
        strategy Always
        sync
        phase Running
        sync
        git on
        annotate {fairway.dev/restart: manual}
        template {spec: {domain: {cpu: {cores: 2}}}}
        sync
        annotate {fairway.dev/restart: automatic}
        sync
        phase Succeeded
        sync
        sync
        phase Running
        sync
        strategy Manual
        template {spec: {domain: {cpu: {cores: 4}}}}
        sync
        gone
        sync
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > git on
            > annotate {fairway.dev/restart: manual}
            > template {spec: {domain: {cpu: {cores: 2}}}}
            > sync
              Running Ready=True RestartRequired=True (a non-live-updatable field was changed in the template spec)
            > annotate {fairway.dev/restart: automatic}
            > sync
              DeleteInstance { uid: "vmi-1" }
              event Restart: Restarting the virtual machine for a change from Git: a non-live-updatable field was changed in the template spec
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-1
              Stopping Ready=True
            > phase Succeeded
            > sync
              ReleaseInstance { uid: "vmi-1" }
              Stopped Ready=False
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > strategy Manual
            > template {spec: {domain: {cpu: {cores: 4}}}}
            > sync
              DeleteInstance { uid: "vmi-2" }
              event Restart: Restarting the virtual machine for a change from Git: a non-live-updatable field was changed in the template spec
              event SuccessfulDelete: Stopped the virtual machine by deleting the virtual machine instance vmi-2
              Stopping Ready=True <Start>
            > gone
            > sync
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False <Start>
            > sync
              Starting Ready=False
        "#]],
    );
}

#[test]
fn changes_that_are_taken_back() {
    play(
        "
        strategy Always
        sync
        phase Running
        sync
        template {spec: {domain: {cpu: {sockets: 2}, memory: {guest: 2Gi}}, nodeSelector: {zone: a}}}
        sync
        template {spec: {domain: {memory: {guest: 1Gi}}, nodeSelector: null}}
        sync
        template {spec: {domain: {cpu: {sockets: 1}}}}
        sync
        ",
        &expect![[r#"
            > strategy Always
            > sync
              AddFinalizer
              CreateInstance { paused: false }
              event SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web
              Starting Ready=False
            > phase Running
            > sync
              Running Ready=True
            > template {spec: {domain: {cpu: {sockets: 2}, memory: {guest: 2Gi}}, nodeSelector: {zone: a}}}
            > sync
              UpdateInstance([Sockets(2), Memory("2Gi"), Placement { field: "nodeSelector", value: Object {"zone": String("a")} }])
              Running Ready=True
            > template {spec: {domain: {memory: {guest: 1Gi}}, nodeSelector: null}}
            > sync
              UpdateInstance([Memory("1Gi"), Placement { field: "nodeSelector", value: Null }])
              Running Ready=True
            > template {spec: {domain: {cpu: {sockets: 1}}}}
            > sync
              Running Ready=True RestartRequired=True (Reduction of CPU socket count requires a restart)
        "#]],
    );
}
