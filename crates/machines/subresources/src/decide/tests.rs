//! Every run strategy with every verb in every state, and every verb on an instance in every phase.
// tidy: long: a table of every verb in every state

use expect_test::{Expect, expect};
use fairway_machines_plan::view::RunStrategy;
use serde_json::{Value, json};

use super::*;
use crate::options::{Restart, Start, Stop};

/// An instance in a phase, or none.
fn vmi(phase: &str) -> Option<Value> {
    (phase != "none").then(|| {
        json!({
            "metadata": {"name": "vm", "uid": "u-1"},
            "spec": {"terminationGracePeriodSeconds": 180},
            "status": {"phase": phase, "nodeName": "n1"},
        })
    })
}

fn vm(strategy: RunStrategy) -> Value {
    json!({
        "metadata": {"name": "vm"}, "spec": {"runStrategy": strategy.word()}, "status": {"printableStatus": "Stopped"},
    })
}

/// One line for a verdict; what every refusal of a kind has in common is left out.
fn line(verdict: &Verdict) -> String {
    match verdict {
        Err(refusal) => {
            let message = refusal.message.split("\"vm\": ").last().unwrap_or_default();
            format!("{} {}: {message}", refusal.code, refusal.reason)
        }
        Ok(steps) => steps.iter().map(step).collect::<Vec<_>>().join(" + "),
    }
}

fn step(step: &Step) -> String {
    match step {
        Step::MergeMachine(patch) => format!("VM {patch}"),
        Step::MergeInstance(patch) => format!("VMI {patch}"),
        Step::PatchMachineStatus(steps) => format!("VM/status {}", operations(steps)),
        Step::PatchInstance(steps) => format!("VMI {}", operations(steps)),
        Step::CreateMigration(migration) => format!("new {migration}"),
    }
}

fn operations(steps: &Value) -> String {
    let all = steps.as_array().unwrap().iter();
    let words = all.filter(|it| it["op"] != "test").map(|it| match &it["value"] {
        Value::Null => format!("{} {}", it["op"].as_str().unwrap(), it["path"].as_str().unwrap()),
        value => format!(
            "{} {} {value}",
            it["op"].as_str().unwrap(),
            it["path"].as_str().unwrap()
        ),
    });
    words.collect::<Vec<_>>().join(", ")
}

const STATES: [&str; 8] = [
    "none",
    "",
    "Scheduling",
    "Scheduled",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
];

/// A table over strategies and states; states with the same answer share a line.
fn table(decide: impl Fn(&Value, Option<&Value>) -> Verdict, expected: &Expect) {
    let mut text = String::new();
    for strategy in RunStrategy::ALL {
        let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
        for state in STATES {
            let answer = line(&decide(&vm(strategy), vmi(state).as_ref()));
            let state = if state.is_empty() { "unset" } else { state };
            match lines.iter_mut().find(|(_, known)| *known == answer) {
                Some((states, _)) => states.push(state),
                None => lines.push((vec![state], answer)),
            }
        }
        for (states, answer) in lines {
            text += &format!("{} {}\n    {answer}\n", strategy.word(), states.join("|"));
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn starting() {
    table(
        |vm, vmi| start(vm, vmi, &Start::default()),
        &expect![[r#"
            Halted none|unset|Succeeded|Failed|Unknown
                VM {"spec":{"runStrategy":"Always"}}
            Halted Scheduling|Scheduled|Running
                409 Conflict: VM is already running
            Manual none|unset|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Start"}]
            Manual Scheduling|Scheduled|Running
                409 Conflict: VM is already running
            Manual Succeeded|Failed
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
            Always none|unset|Succeeded|Failed|Unknown
                409 Conflict: Always does not support manual start requests
            Always Scheduling|Scheduled|Running
                409 Conflict: VM is already running
            RerunOnFailure none|unset|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Start"}]
            RerunOnFailure Scheduling|Scheduled|Running
                409 Conflict: VM is already running
            RerunOnFailure Succeeded
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
            RerunOnFailure Failed
                409 Conflict: RerunOnFailure does not support starting VM from failed state
            Once none|unset|Succeeded|Failed|Unknown
                409 Conflict: Once does not support manual start requests
            Once Scheduling|Scheduled|Running
                409 Conflict: VM is already running
        "#]],
    );
}

#[test]
fn starting_paused() {
    let options = Start {
        paused: true,
        ..Start::default()
    };
    table(
        |vm, vmi| start(vm, vmi, &options),
        &expect![[r#"
        Halted none|unset|Succeeded|Failed|Unknown
            VM/status add /status/stateChangeRequests [{"action":"Start","data":{"paused":"true"}}]
        Halted Scheduling|Scheduled|Running
            409 Conflict: VM is already running
        Manual none|unset|Unknown
            VM/status add /status/stateChangeRequests [{"action":"Start","data":{"paused":"true"}}]
        Manual Scheduling|Scheduled|Running
            409 Conflict: VM is already running
        Manual Succeeded|Failed
            VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start","data":{"paused":"true"}}]
        Always none|unset|Succeeded|Failed|Unknown
            409 Conflict: Always does not support manual start requests
        Always Scheduling|Scheduled|Running
            409 Conflict: VM is already running
        RerunOnFailure none|unset|Unknown
            VM/status add /status/stateChangeRequests [{"action":"Start","data":{"paused":"true"}}]
        RerunOnFailure Scheduling|Scheduled|Running
            409 Conflict: VM is already running
        RerunOnFailure Succeeded
            VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start","data":{"paused":"true"}}]
        RerunOnFailure Failed
            409 Conflict: RerunOnFailure does not support starting VM from failed state
        Once none|unset|Succeeded|Failed|Unknown
            409 Conflict: Once does not support manual start requests
        Once Scheduling|Scheduled|Running
            409 Conflict: VM is already running
    "#]],
    );
}

#[test]
fn stopping() {
    table(
        |vm, vmi| stop(vm, vmi, &Stop::default()),
        &expect![[r#"
            Halted none|Succeeded|Failed
                409 Conflict: VM is not running
            Halted unset|Scheduling|Scheduled|Running|Unknown
                409 Conflict: Halted only supports manual stop requests with a shorter graceperiod
            Manual none|Succeeded|Failed
                409 Conflict: VM is not running
            Manual unset|Scheduling|Scheduled|Running|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]
            Always none|unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                VM {"spec":{"runStrategy":"Halted"}}
            RerunOnFailure none|Succeeded|Failed
                409 Conflict: VM is not running
            RerunOnFailure unset|Scheduling|Scheduled|Running|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]
            Once none|unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                VM {"spec":{"runStrategy":"Halted"}}
        "#]],
    );
}

#[test]
fn stopping_by_force() {
    let options = Stop {
        grace_period: Some(0),
        ..Stop::default()
    };
    table(
        |vm, vmi| stop(vm, vmi, &options),
        &expect![[r#"
        Halted none|Succeeded|Failed
            409 Conflict: VM is not running
        Halted unset|Scheduling|Scheduled|Running|Unknown
            VMI {"spec":{"terminationGracePeriodSeconds":0}} + VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]
        Manual none|Succeeded|Failed
            409 Conflict: VM is not running
        Manual unset|Scheduling|Scheduled|Running|Unknown
            VMI {"spec":{"terminationGracePeriodSeconds":0}} + VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]
        Always none|Succeeded|Failed
            VM {"spec":{"runStrategy":"Halted"}}
        Always unset|Scheduling|Scheduled|Running|Unknown
            VMI {"spec":{"terminationGracePeriodSeconds":0}} + VM {"spec":{"runStrategy":"Halted"}}
        RerunOnFailure none|Succeeded|Failed
            409 Conflict: VM is not running
        RerunOnFailure unset|Scheduling|Scheduled|Running|Unknown
            VMI {"spec":{"terminationGracePeriodSeconds":0}} + VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]
        Once none|Succeeded|Failed
            VM {"spec":{"runStrategy":"Halted"}}
        Once unset|Scheduling|Scheduled|Running|Unknown
            VMI {"spec":{"terminationGracePeriodSeconds":0}} + VM {"spec":{"runStrategy":"Halted"}}
    "#]],
    );
}

#[test]
fn stopping_with_more_time_than_before() {
    let options = Stop {
        grace_period: Some(180),
        ..Stop::default()
    };
    let running = vmi("Running");
    let verdict = stop(&vm(RunStrategy::Halted), running.as_ref(), &options);
    expect!["409 Conflict: Halted only supports manual stop requests with a shorter graceperiod"]
        .assert_eq(&line(&verdict));
    // One that has no time of its own is stopped.
    let mut without = running.unwrap();
    without["spec"] = json!({});
    let verdict = stop(&vm(RunStrategy::Halted), Some(&without), &options);
    expect![[r#"VMI {"spec":{"terminationGracePeriodSeconds":180}} + VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"}]"#]].assert_eq(&line(&verdict));
}

#[test]
fn restarting() {
    table(
        |vm, vmi| restart(vm, vmi, &Restart::default()),
        &expect![[r#"
            Halted none|unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                409 Conflict: RunStategy Halted does not support manual restart requests
            Manual none
                409 Conflict: VM is not running: Halted
            Manual unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
            Always none
                409 Conflict: VM is not running: Halted
            Always unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
            RerunOnFailure none
                409 Conflict: VM is not running: Halted
            RerunOnFailure unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
            Once none|unset|Scheduling|Scheduled|Running|Succeeded|Failed|Unknown
                409 Conflict: RunStategy Once does not support manual restart requests
        "#]],
    );
}

#[test]
fn restarting_by_force() {
    let seconds = |seconds| Restart {
        grace_period_seconds: Some(seconds),
        ..Restart::default()
    };
    let (vm, vmi) = (vm(RunStrategy::Always), vmi("Running"));
    let lines = [0, 1, -1].map(|it| line(&restart(&vm, vmi.as_ref(), &seconds(it))));
    expect![[r#"
        VMI {"spec":{"terminationGracePeriodSeconds":1}} + VM/status add /status/stateChangeRequests [{"action":"Stop","uid":"u-1"},{"action":"Start"}]
        400 BadRequest: For force restart, only gracePeriod=0 is supported for now
        400 BadRequest: gracePeriod has to be greater or equal to 0"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn migrating() {
    table(
        migrate,
        &expect![[r#"
        Halted none
            404 NotFound: virtualmachineinstance.kubevirt.io "vm" not found
        Halted unset|Scheduling|Scheduled|Succeeded|Failed|Unknown
            409 Conflict: VM is not running
        Halted Running
            new {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"generateName":"kubevirt-migrate-vm-"},"spec":{"vmiName":"vm"}}
        Manual none
            404 NotFound: virtualmachineinstance.kubevirt.io "vm" not found
        Manual unset|Scheduling|Scheduled|Succeeded|Failed|Unknown
            409 Conflict: VM is not running
        Manual Running
            new {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"generateName":"kubevirt-migrate-vm-"},"spec":{"vmiName":"vm"}}
        Always none
            404 NotFound: virtualmachineinstance.kubevirt.io "vm" not found
        Always unset|Scheduling|Scheduled|Succeeded|Failed|Unknown
            409 Conflict: VM is not running
        Always Running
            new {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"generateName":"kubevirt-migrate-vm-"},"spec":{"vmiName":"vm"}}
        RerunOnFailure none
            404 NotFound: virtualmachineinstance.kubevirt.io "vm" not found
        RerunOnFailure unset|Scheduling|Scheduled|Succeeded|Failed|Unknown
            409 Conflict: VM is not running
        RerunOnFailure Running
            new {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"generateName":"kubevirt-migrate-vm-"},"spec":{"vmiName":"vm"}}
        Once none
            404 NotFound: virtualmachineinstance.kubevirt.io "vm" not found
        Once unset|Scheduling|Scheduled|Succeeded|Failed|Unknown
            409 Conflict: VM is not running
        Once Running
            new {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"generateName":"kubevirt-migrate-vm-"},"spec":{"vmiName":"vm"}}
    "#]],
    );
}

#[test]
fn the_old_field_stays_in_use() {
    let with = |running: bool| json!({"metadata": {"name": "vm"}, "spec": {"running": running}});
    let lines = [
        line(&start(&with(false), None, &Start::default())),
        line(&start(&with(true), None, &Start::default())),
        line(&stop(&with(true), None, &Stop::default())),
        line(&stop(&with(false), None, &Stop::default())),
    ];
    expect![[r#"
        VM {"spec":{"running":true}}
        409 Conflict: Always does not support manual start requests
        VM {"spec":{"running":false}}
        409 Conflict: VM is not running"#]]
    .assert_eq(&lines.join("\n"));
    let mut both = with(true);
    both["spec"]["runStrategy"] = "Always".into();
    assert_eq!(start(&both, None, &Start::default()).unwrap_err().code, 500);
}

#[test]
fn requests_that_wait_are_minded() {
    let manual = |status: Value| json!({"metadata": {"name": "vm"}, "spec": {"runStrategy": "Manual"}, "status": status});
    let waiting =
        json!({"stateChangeRequests": [{"action": "Start"}], "startFailure": {"consecutiveFailCount": 3}});
    let running = vmi("Running");
    let whole = |verdict: Verdict| match verdict {
        Ok(steps) => format!("{steps:?}"),
        Err(refusal) => refusal.message,
    };
    let lines = [
        // No status at all.
        whole(start(&manual(Value::Null), None, &Start::default())),
        whole(start(&manual(json!({})), None, &Start::default())),
        // Nothing waits: that is tested.
        whole(start(&manual(json!({"created": false})), None, &Start::default())),
        // Something waits: a stop takes its place, and nothing else may.
        whole(stop(&manual(waiting.clone()), running.as_ref(), &Stop::default())),
        whole(start(&manual(waiting.clone()), None, &Start::default())),
        whole(restart(&manual(waiting), running.as_ref(), &Restart::default())),
    ];
    expect![[r#"
        [PatchMachineStatus(Array [Object {"op": String("add"), "path": String("/status"), "value": Object {"stateChangeRequests": Array [Object {"action": String("Start")}]}}])]
        [PatchMachineStatus(Array [Object {"op": String("add"), "path": String("/status"), "value": Object {"stateChangeRequests": Array [Object {"action": String("Start")}]}}])]
        [PatchMachineStatus(Array [Object {"op": String("test"), "path": String("/status/stateChangeRequests"), "value": Null}, Object {"op": String("add"), "path": String("/status/stateChangeRequests"), "value": Array [Object {"action": String("Start")}]}])]
        [PatchMachineStatus(Array [Object {"op": String("test"), "path": String("/status/stateChangeRequests"), "value": Array [Object {"action": String("Start")}]}, Object {"op": String("replace"), "path": String("/status/stateChangeRequests"), "value": Array [Object {"action": String("Stop"), "uid": String("u-1")}]}, Object {"op": String("remove"), "path": String("/status/startFailure")}])]
        Internal error occurred: unable to complete request: stop/start already underway
        Internal error occurred: unable to complete request: stop/start already underway"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn machines_whose_volumes_were_lost_on_the_way_wait_for_a_person() {
    let with = |kind: &str| {
        let mut vm = vm(RunStrategy::Manual);
        vm["status"]["conditions"] = json!([{"type": kind, "status": "True"}]);
        vm
    };
    let refused = start(&with("ManualRecoveryRequired"), None, &Start::default()).unwrap_err();
    assert!(refused.message.contains("VM recovery required"), "{refused:?}");
    let refused = restart(
        &with("VolumesChange"),
        vmi("Running").as_ref(),
        &Restart::default(),
    );
    assert!(refused.unwrap_err().message.contains("VM recovery required"));
}

/// What is asked of an instance.
type Asked = fn(&Value) -> Result<(), Refusal>;

#[test]
fn instances() {
    let with = |change: fn(&mut Value)| {
        let mut vmi = vmi("Running").unwrap();
        change(&mut vmi);
        vmi
    };
    let condition = |vmi: &mut Value, kind: &str| {
        vmi["status"]["conditions"] = json!([{"type": kind, "status": "True"}]);
    };
    let mut paused = with(|_| {});
    condition(&mut paused, "Paused");
    let mut agent = with(|_| {});
    condition(&mut agent, "AgentConnected");
    let cases: Vec<(&str, Value)> = vec![
        ("scheduling", vmi("Scheduling").unwrap()),
        ("scheduled", vmi("Scheduled").unwrap()),
        ("running", with(|_| {})),
        ("paused", paused),
        ("with agent", agent),
        ("succeeded", vmi("Succeeded").unwrap()),
        ("failed", vmi("Failed").unwrap()),
        (
            "with liveness probe",
            with(|vmi| vmi["spec"]["livenessProbe"] = json!({})),
        ),
        (
            "without ACPI",
            with(|vmi| vmi["spec"]["domain"]["features"]["acpi"]["enabled"] = false.into()),
        ),
        (
            "without devices",
            with(|vmi| {
                vmi["spec"]["domain"]["devices"] =
                    json!({"autoattachSerialConsole": false, "autoattachGraphicsDevice": false});
            }),
        ),
        (
            "with USB and vsock",
            with(|vmi| {
                vmi["spec"]["domain"]["devices"] = json!({"clientPassthrough": {}, "autoattachVSOCK": true});
            }),
        ),
    ];
    let verbs: [(&str, Asked); 12] = [
        ("reach", |vmi| reachable(vmi).map(drop)),
        ("pause", pause),
        ("unpause", unpause),
        ("freeze", freeze),
        ("unfreeze", unfreeze),
        ("softreboot", soft_reboot),
        ("guestosinfo", guest_data),
        ("console", console),
        ("vnc", vnc),
        ("portforward", port_forward),
        ("usbredir", usb_redirection),
        ("vsock", vsock),
    ];
    let mut text = String::new();
    for (verb, ask) in verbs {
        text += &format!("{verb}\n");
        let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
        for (case, vmi) in &cases {
            let answer = match ask(vmi) {
                Ok(()) => "yes".to_owned(),
                Err(refusal) => line(&Err(refusal)),
            };
            match lines.iter_mut().find(|(_, known)| *known == answer) {
                Some((cases, _)) => cases.push(case),
                None => lines.push((vec![case], answer)),
            }
        }
        for (cases, answer) in lines {
            text += &format!("    {}\n        {answer}\n", cases.join("|"));
        }
    }
    expect![[r#"
        reach
            scheduling
                400 BadRequest: Unable to connect to VirtualMachineInstance because phase is Scheduling instead of Running or Scheduled
            scheduled|running|paused|with agent|with liveness probe|without ACPI|without devices|with USB and vsock
                yes
            succeeded
                400 BadRequest: Unable to connect to VirtualMachineInstance because phase is Succeeded instead of Running or Scheduled
            failed
                400 BadRequest: Unable to connect to VirtualMachineInstance because phase is Failed instead of Running or Scheduled
        pause
            scheduling|scheduled|succeeded|failed
                409 Conflict: VM is not running
            running|with agent|without ACPI|without devices|with USB and vsock
                yes
            paused
                409 Conflict: VMI is already paused
            with liveness probe
                403 Forbidden: virtualmachineinstance.kubevirt.io "vm" is forbidden: Pausing VMIs with LivenessProbe is currently not supported
        unpause
            scheduling|scheduled|succeeded|failed
                409 Conflict: VMI is not running
            running|with agent|with liveness probe|without ACPI|without devices|with USB and vsock
                409 Conflict: VMI is not paused
            paused
                yes
        freeze
            scheduling|scheduled|succeeded|failed
                409 Conflict: VM is not running
            running|paused|with agent|with liveness probe|without ACPI|without devices|with USB and vsock
                yes
        unfreeze
            scheduling|scheduled|succeeded|failed
                409 Conflict: VMI is not running
            running|paused|with agent|with liveness probe|without ACPI|without devices|with USB and vsock
                yes
        softreboot
            scheduling|scheduled|succeeded|failed
                409 Conflict: VM is not running
            running|with agent|with liveness probe|without devices|with USB and vsock
                yes
            paused
                409 Conflict: VMI is paused
            without ACPI
                409 Conflict: VMI neither have the agent connected nor the ACPI feature enabled
        guestosinfo
            scheduling|scheduled|succeeded|failed
                500 Conflict: VMI is not running
            running|paused|with liveness probe|without ACPI|without devices|with USB and vsock
                500 Conflict: VMI does not have guest agent connected
            with agent
                yes
        console
            scheduling|scheduled|succeeded
                400 BadRequest: VMI is not running
            running|paused|with agent|with liveness probe|without ACPI|with USB and vsock
                yes
            failed
                409 Conflict: VMI is in failed status
            without devices
                400 BadRequest: No serial consoles are present.
        vnc
            scheduling|scheduled|succeeded|failed
                400 BadRequest: VMI is not running
            running|paused|with agent|with liveness probe|without ACPI|with USB and vsock
                yes
            without devices
                400 BadRequest: No graphics devices are present.
        portforward
            scheduling|scheduled|running|with agent|succeeded|failed|with liveness probe|without ACPI|without devices|with USB and vsock
                yes
            paused
                409 Conflict: VMI is paused
        usbredir
            scheduling|scheduled|running|paused|with agent|succeeded|failed|with liveness probe|without ACPI|without devices
                409 Conflict: Not configured with USB Redirection
            with USB and vsock
                400 BadRequest: USB redirection is not supported by Fairway
        vsock
            scheduling|scheduled|running|paused|with agent|succeeded|failed|with liveness probe|without ACPI|without devices
                400 BadRequest: VSOCK is not attached.
            with USB and vsock
                400 BadRequest: VSOCK is not supported by Fairway
    "#]].assert_eq(&text);
}

#[test]
fn a_reset_that_comes_too_early_says_so() {
    let refusal = || Refusal::bad_request("no");
    let early = reset_context(&vmi("Scheduled").unwrap(), refusal());
    assert_eq!(
        early.message,
        "Failed to reset non-running VMI with phase Scheduled: no"
    );
    assert_eq!(reset_context(&vmi("Running").unwrap(), refusal()).message, "no");
}

#[test]
fn ports_and_addresses() {
    for (rest, expected) in [
        ("22", Ok(22)),
        ("22/tcp", Ok(22)),
        ("65535/tcp", Ok(65535)),
        ("", Err("port must not be empty")),
        ("/tcp", Err("port must not be empty")),
        ("0", Err("\"0\" is not a port: 1 to 65535")),
        ("65536", Err("\"65536\" is not a port: 1 to 65535")),
        ("ssh", Err("\"ssh\" is not a port: 1 to 65535")),
        (
            "53/udp",
            Err("UDP ports are not forwarded: Fairway carries TCP into guests"),
        ),
        ("53/sctp", Err("unknown network sctp")),
        ("53/tcp/x", Err("unknown network tcp/x")),
    ] {
        let found = port(rest).map(|port| port.0).map_err(|it| it.message);
        assert_eq!(found, expected.map_err(str::to_owned), "{rest:?}");
    }
    let on = |interfaces: Value| json!({"metadata": {"name": "vm"}, "status": {"interfaces": interfaces}});
    for (interfaces, expected) in [
        (json!(null), Err("no network interfaces are present")),
        (json!([]), Err("no network interfaces are present")),
        (
            json!([{"name": "default"}]),
            Err("the interfaces of \"vm\" have no address yet: try again"),
        ),
        (
            json!([{"name": "a"}, {"ipAddress": "10.88.0.7"}]),
            Ok("10.88.0.7"),
        ),
        (json!([{"ipAddress": "fd00::7"}]), Ok("fd00::7")),
    ] {
        let found = address(&on(interfaces.clone())).map_err(|it| it.message);
        let expected = expected.map(|it| it.parse().unwrap()).map_err(str::to_owned);
        assert_eq!(found, expected, "{interfaces}");
    }
}

fn adding(name: &str, claim: &str) -> VolumeChange {
    VolumeChange::add(json!({
        "name": name, "disk": {"disk": {"bus": "scsi"}, "name": "x"},
        "volumeSource": {"persistentVolumeClaim": {"claimName": claim}},
    }))
    .unwrap()
}

fn removing(name: &str) -> VolumeChange {
    VolumeChange::remove(json!({"name": name})).unwrap()
}

#[test]
fn options_of_volumes() {
    let added = [
        json!(null),
        json!([]),
        json!({}),
        json!({"name": "a"}),
        json!({"name": "a", "disk": {}}),
        json!({"name": "a", "disk": {}, "volumeSource": {}}),
        json!({"name": "a", "disk": {"name": "b"}, "volumeSource": {"dataVolume": {"name": "dv"}}}),
    ];
    let added = added.map(|it| match VolumeChange::add(it) {
        Ok(change) => format!("{change:?}"),
        Err(refusal) => refusal.message,
    });
    expect![[r#"
        Request with no body, a new name is expected as the request body
        Can not unmarshal Request body to struct, error: it is not an object
        AddVolumeOptions requires name to be set
        AddVolumeOptions requires disk to not be nil
        AddVolumeOptions requires VolumeSource to not be nil
        AddVolumeOptions requires VolumeSource to name a dataVolume or a persistentVolumeClaim
        Add(Object {"name": String("a"), "disk": Object {"name": String("a")}, "volumeSource": Object {"dataVolume": Object {"name": String("dv"), "hotpluggable": Bool(true)}}})"#]].assert_eq(&added.join("\n"));
    let refused = VolumeChange::remove(json!({})).unwrap_err();
    assert_eq!(refused.message, "RemoveVolumeOptions requires name to be set");
}

#[test]
fn volumes_of_machines() {
    let vm = |requests: Value| {
        json!({
            "metadata": {"name": "vm"},
            "spec": {"template": {"spec": {"volumes": [
                {"name": "root", "dataVolume": {"name": "root-dv"}},
                {"name": "more", "persistentVolumeClaim": {"claimName": "more-claim", "hotpluggable": true}},
            ]}}},
            "status": {"volumeRequests": requests},
        })
    };
    let nothing = json!(null);
    let add = json!([{"addVolumeOptions": {"name": "new"}}, {"addVolumeOptions": {"name": "other"}}]);
    let remove = json!([{"removeVolumeOptions": {"name": "new"}}]);
    let lines: Vec<String> = [
        ("add", &nothing, adding("new", "c")),
        ("add, name taken", &nothing, adding("root", "c")),
        ("add, claim taken", &nothing, adding("new", "root-dv")),
        ("add twice", &add, adding("new", "c")),
        ("add while it goes", &remove, adding("new", "c")),
        ("remove", &nothing, removing("more")),
        ("remove by claim", &nothing, removing("more-claim")),
        ("remove what is not", &nothing, removing("none")),
        ("remove what is fixed", &nothing, removing("root")),
    ]
    .into_iter()
    .map(|(case, requests, change)| {
        format!(
            "{case}\n    {}",
            line(&machine_volume(&vm(requests.clone()), &change))
        )
    })
    .collect();
    expect![[r#"
        add
            VM/status add /status/volumeRequests [{"addVolumeOptions":{"name":"new","disk":{"disk":{"bus":"scsi"},"name":"new"},"volumeSource":{"persistentVolumeClaim":{"claimName":"c","hotpluggable":true}}}}]
        add, name taken
            409 Conflict: Unable to add volume [root] because volume with that name already exists
        add, claim taken
            409 Conflict: Unable to add volume source [root-dv] because it already exists
        add twice
            409 Conflict: add volume request for volume [new] already exists
        add while it goes
            409 Conflict: unable to add volume since a remove volume request for volume [new] already exists and is still being processed
        remove
            VM/status add /status/volumeRequests [{"removeVolumeOptions":{"name":"more"}}]
        remove by claim
            VM/status add /status/volumeRequests [{"removeVolumeOptions":{"name":"more"}}]
        remove what is not
            409 Conflict: Unable to remove volume [none] because it does not exist
        remove what is fixed
            409 Conflict: Unable to remove volume [root] because it is not hotpluggable"#]].assert_eq(&lines.join("\n"));
    // A request that is not followed yet is taken back.
    let mut known = vm(json!([{"addVolumeOptions": {"name": "more"}}, {"addVolumeOptions": {"name": "x"}}]));
    expect![[r#"VM/status replace /status/volumeRequests [{"addVolumeOptions":{"name":"x"}},{"removeVolumeOptions":{"name":"more"}}]"#]].assert_eq(&line(&machine_volume(&known, &removing("more"))));
    known["status"]["volumeRequests"] = json!([{"removeVolumeOptions": {"name": "more"}}]);
    assert_eq!(
        machine_volume(&known, &removing("more")).unwrap_err().message,
        "Operation cannot be fulfilled on virtualmachine.kubevirt.io \"vm\": a remove volume request for volume \
         [more] already exists and is still being processed"
    );
}

#[test]
fn volumes_of_instances() {
    let vmi = |phase: &str| {
        json!({
            "metadata": {"name": "vm"},
            "spec": {
                "volumes": [{"name": "more", "dataVolume": {"name": "dv", "hotpluggable": true}}],
                "domain": {"devices": {"disks": [{"name": "more", "disk": {}}]}},
            },
            "status": {"phase": phase},
        })
    };
    let empty = json!({"metadata": {"name": "vm"}, "spec": {"domain": {"devices": {}}}, "status": {"phase": "Running"}});
    let lines = [
        instance_volume(&vmi("Running"), &adding("new", "c")),
        instance_volume(&empty, &adding("new", "c")),
        instance_volume(&vmi("Running"), &removing("more")),
        instance_volume(&vmi("Running"), &removing("none")),
        instance_volume(&vmi("Scheduled"), &removing("more")),
    ]
    .map(|verdict| line(&verdict));
    expect![[r#"
        VMI replace /spec/volumes [{"name":"more","dataVolume":{"name":"dv","hotpluggable":true}},{"name":"new","persistentVolumeClaim":{"claimName":"c","hotpluggable":true}}], replace /spec/domain/devices/disks [{"name":"more","disk":{}},{"disk":{"bus":"scsi"},"name":"new"}]
        VMI add /spec/volumes [{"name":"new","persistentVolumeClaim":{"claimName":"c","hotpluggable":true}}], add /spec/domain/devices/disks [{"disk":{"bus":"scsi"},"name":"new"}]
        VMI replace /spec/volumes [], replace /spec/domain/devices/disks []
        409 Conflict: Unable to remove volume [none] because it does not exist
        409 Conflict: VMI is not running"#]].assert_eq(&lines.join("\n"));
}
