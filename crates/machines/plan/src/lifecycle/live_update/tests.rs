//! What is made of a change that a node could not make.

use serde_json::json;

use super::*;

#[test]
fn what_a_node_could_not_do_waits_for_a_restart() {
    let spec = json!({"domain": {
        "cpu": {"sockets": 2, "maxSockets": 4}, "memory": {"guest": "2Gi", "maxGuest": "4Gi"}, "devices": {},
    }});
    let revision = Revision {
        started: &spec,
        current: &spec,
        started_metadata: &Value::Null,
        metadata: &Value::Null,
    };
    let says = |kind: &str, status: &str, message: &str| {
        let condition = json!({"type": kind, "status": status, "message": message});
        let object = json!({"spec": spec, "status": {"conditions": [condition]}});
        let vmi = view::read("VirtualMachineInstance", &object).unwrap();
        update(&revision, &vmi, &Settings::default())
    };
    let restart = |why: &str| Update::Restart(why.to_owned());
    for (kind, status, message, expected) in [
        ("Ready", "False", "", Update::Nothing),
        ("HotMemoryChange", "True", "", Update::Nothing),
        (
            "HotMemoryChange",
            "False",
            "no driver",
            restart(
                "memory updated in template spec. Memory-hotplug failed and is not available for this VM configuration",
            ),
        ),
        ("HotVCPUChange", "True", "", Update::Nothing),
        (
            "HotVCPUChange",
            "False",
            "vCPU hotplug failed: no",
            restart("CPU sockets updated in template spec. vCPU hotplug failed: no"),
        ),
        (
            HOTPLUG_FAILED,
            "True",
            "disk data: no port",
            restart("disk data: no port"),
        ),
    ] {
        assert_eq!(says(kind, status, message), expected, "{kind} {status}");
    }
}
