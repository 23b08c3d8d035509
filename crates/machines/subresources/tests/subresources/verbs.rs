//! Every verb, from the request to what is in the objects or at the node afterwards.

use serde_json::{Value, json};

use crate::machines::{INSTANCES, MACHINES};
use crate::world::{MASTERS, World, everywhere};
use fairway_machines_guests::Refusal;

async fn spec(world: &World, name: &str) -> Value {
    world.get(&format!("{MACHINES}/{name}")).await["spec"].clone()
}

async fn requests(world: &World, name: &str) -> Value {
    world.get(&format!("{MACHINES}/{name}")).await["status"]["stateChangeRequests"].clone()
}

async fn accepted(world: &World, path: &str, body: &str) {
    let answer = world.ask("PUT", path, body).await;
    assert_eq!(
        (answer.code, answer.bytes.len()),
        (202, 0),
        "{path}: {}",
        answer.line()
    );
}

#[tokio::test]
async fn machines_are_started_and_stopped() {
    everywhere(|world| async move {
        world.machine("halted", "Halted").await;
        accepted(&world, "virtualmachines/halted/start", r#"{"dryRun":["All"]}"#).await;
        assert_eq!(spec(&world, "halted").await["runStrategy"], "Halted");
        accepted(&world, "virtualmachines/halted/start", "{}").await;
        assert_eq!(spec(&world, "halted").await["runStrategy"], "Always");
        let again = world.ask("PUT", "virtualmachines/halted/start", "").await;
        assert_eq!(
            again.line(),
            "409 Operation cannot be fulfilled on virtualmachine.kubevirt.io \"halted\": Always does not support \
             manual start requests"
        );
        let status = again.json();
        assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Conflict")));
        accepted(&world, "virtualmachines/halted/stop", "{}").await;
        assert_eq!(spec(&world, "halted").await["runStrategy"], "Halted");

        world.machine("manual", "Manual").await;
        accepted(&world, "virtualmachines/manual/start", r#"{"paused":true}"#).await;
        let start = json!([{"action": "Start", "data": {"paused": "true"}}]);
        assert_eq!(requests(&world, "manual").await, start);
        let again = world.ask("PUT", "virtualmachines/manual/start", "{}").await;
        assert_eq!(
            again.line(),
            "500 Internal error occurred: unable to complete request: stop/start already underway"
        );
        world.instance("manual", "Running").await;
        let uid = world.get(&format!("{INSTANCES}/manual")).await["metadata"]["uid"].clone();
        let again = world.ask("PUT", "virtualmachines/manual/start", "{}").await;
        assert!(again.line().ends_with("VM is already running"), "{}", again.line());
        accepted(&world, "virtualmachines/manual/stop", r#"{"gracePeriod":5}"#).await;
        assert_eq!(requests(&world, "manual").await, json!([{"action": "Stop", "uid": uid}]));
        let vmi = world.get(&format!("{INSTANCES}/manual")).await;
        assert_eq!(vmi["spec"]["terminationGracePeriodSeconds"], 5);
    })
    .await;
}

#[tokio::test]
async fn machines_are_restarted_and_migrated() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        let early = world.ask("PUT", "virtualmachines/vm/restart", "{}").await;
        assert!(
            early.line().ends_with("VM is not running: Halted"),
            "{}",
            early.line()
        );
        let early = world.ask("PUT", "virtualmachines/vm/migrate", "{}").await;
        assert_eq!(
            early.line(),
            "404 virtualmachineinstance.kubevirt.io \"vm\" not found"
        );
        world.instance("vm", "Running").await;
        let uid = world.get(&format!("{INSTANCES}/vm")).await["metadata"]["uid"].clone();
        accepted(
            &world,
            "virtualmachines/vm/restart",
            r#"{"gracePeriodSeconds":0}"#,
        )
        .await;
        let both = json!([{"action": "Stop", "uid": uid}, {"action": "Start"}]);
        assert_eq!(requests(&world, "vm").await, both);
        let vmi = world.get(&format!("{INSTANCES}/vm")).await;
        assert_eq!(vmi["spec"]["terminationGracePeriodSeconds"], 1);
        let wrong = world
            .ask("PUT", "virtualmachines/vm/restart", r#"{"gracePeriodSeconds":7}"#)
            .await;
        assert_eq!(wrong.code, 400, "{}", wrong.line());

        let migrations = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstancemigrations";
        world
            .says(
                "vm",
                json!({"conditions": [{"type": "LiveMigratable", "status": "True"}]}),
            )
            .await;
        accepted(&world, "virtualmachines/vm/migrate", r#"{"dryRun":["All"]}"#).await;
        assert_eq!(world.api.list(migrations).await.unwrap().len(), 0);
        accepted(&world, "virtualmachines/vm/migrate", "{}").await;
        let made = world.api.list(migrations).await.unwrap();
        assert_eq!(made.len(), 1);
        assert_eq!(made[0]["spec"]["vmiName"], "vm");
        let name = made[0]["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("kubevirt-migrate-vm-"), "{name}");
    })
    .await;
}

#[tokio::test]
async fn volumes_come_and_go() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        let add = r#"{"name":"more","disk":{"disk":{"bus":"scsi"}},"volumeSource":{"persistentVolumeClaim":{"claimName":"c"}}}"#;
        let missing = world.ask("PUT", "virtualmachineinstances/vm/addvolume", add).await;
        assert_eq!(missing.code, 404, "{}", missing.line());
        world.instance("vm", "Running").await;

        accepted(&world, "virtualmachines/vm/addvolume", add).await;
        let vm = world.get(&format!("{MACHINES}/vm")).await;
        let request = &vm["status"]["volumeRequests"][0]["addVolumeOptions"];
        assert_eq!((&request["name"], &request["disk"]["name"]), (&json!("more"), &json!("more")));
        assert_eq!(request["volumeSource"]["persistentVolumeClaim"]["hotpluggable"], true);
        let again = world.ask("PUT", "virtualmachines/vm/addvolume", add).await;
        assert!(again.line().ends_with("add volume request for volume [more] already exists"), "{}", again.line());

        accepted(&world, "virtualmachineinstances/vm/addvolume", add).await;
        let vmi = world.get(&format!("{INSTANCES}/vm")).await;
        let volume = json!({"name": "more", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}});
        assert_eq!(vmi["spec"]["volumes"][1], volume);
        assert_eq!(vmi["spec"]["domain"]["devices"]["disks"][1]["name"], "more");
        accepted(&world, "virtualmachineinstances/vm/removevolume", r#"{"name":"c"}"#).await;
        let vmi = world.get(&format!("{INSTANCES}/vm")).await;
        assert_eq!(vmi["spec"]["volumes"].as_array().unwrap().len(), 1);
        for (body, expected) in [
            (r#"{"name":"root"}"#, "Unable to remove volume [root] because it is not hotpluggable"),
            (r#"{"name":"none"}"#, "Unable to remove volume [none] because it does not exist"),
            ("{}", "RemoveVolumeOptions requires name to be set"),
            ("", "Request with no body, a new name is expected as the request body"),
        ] {
            let refused = world.ask("PUT", "virtualmachineinstances/vm/removevolume", body).await;
            assert!(refused.line().ends_with(expected), "{body}: {}", refused.line());
        }
    })
    .await;
}

#[tokio::test]
async fn running_machines_do_as_they_are_told() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        let missing = world.ask("PUT", "virtualmachineinstances/vm/pause", "{}").await;
        assert_eq!(missing.line(), "404 virtualmachineinstance.kubevirt.io \"vm\" not found");
        world.instance("vm", "Running").await;
        let key = format!("{}|vms/vm on n1", world.id);
        for (verb, body, expected) in [
            ("pause", r#"{"dryRun":["All"]}"#, None),
            ("pause", "{}", Some("Pause")),
            ("freeze", r#"{"unfreezeTimeout":"5m0s"}"#, Some("Freeze { unfreeze_seconds: Some(300) }")),
            ("freeze", r#"{"unfreezeTimeout":"0s"}"#, Some("Freeze { unfreeze_seconds: None }")),
            ("unfreeze", "", Some("Unfreeze")),
            ("softreboot", "", Some("SoftReboot")),
            ("reset", "", Some("Reset")),
        ] {
            let answer = world.ask("PUT", &format!("virtualmachineinstances/vm/{verb}"), body).await;
            assert_eq!((answer.code, answer.bytes.len()), (200, 0), "{verb}: {}", answer.line());
            let expected: Vec<String> = expected.map(|it| format!("{it} of {key}")).into_iter().collect();
            assert_eq!(world.machines.taken(), expected, "{verb}");
        }
        let unpaused = world.ask("PUT", "virtualmachineinstances/vm/unpause", "{}").await;
        assert!(unpaused.line().ends_with("VMI is not paused"), "{}", unpaused.line());
        world.condition("vm", "Paused").await;
        let answer = world.ask("PUT", "virtualmachineinstances/vm/unpause", "{}").await;
        assert_eq!(answer.code, 200);
        assert_eq!(world.machines.taken(), [format!("Unpause of {key}")]);

        // What the node says comes through.
        for (refusal, expected) in [
            (Refusal::Conflict("it is being moved".to_owned()), "409 Operation cannot be fulfilled on \
                virtualmachineinstance.kubevirt.io \"vm\": it is being moved"),
            (Refusal::Lacks("it has no agent".to_owned()), "400 it has no agent"),
            (Refusal::Failed("QEMU said no".to_owned()), "500 Internal error occurred: QEMU said no"),
        ] {
            world.machines.answers.lock().unwrap().push_back(Err(refusal));
            let answer = world.ask("PUT", "virtualmachineinstances/vm/reset", "").await;
            assert_eq!(answer.line(), expected);
        }
        world.says("vm", json!({"phase": "Scheduling"})).await;
        let early = world.ask("PUT", "virtualmachineinstances/vm/reset", "").await;
        assert_eq!(
            early.line(),
            "400 Failed to reset non-running VMI with phase Scheduling: Unable to connect to VirtualMachineInstance \
             because phase is Scheduling instead of Running or Scheduled"
        );
    })
    .await;
}

#[tokio::test]
async fn guests_tell_about_themselves() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        world.instance("vm", "Running").await;
        let used = world.ask("GET", "virtualmachineinstances/vm/guestosinfo/usage", "").await;
        assert_eq!((used.code, &used.json()["cpuSeconds"]), (200, &json!(1.5)));
        let before = world
            .ask("GET", "virtualmachineinstances/vm/guestosinfo/usage/history", "")
            .await;
        assert_eq!((before.code, &before.json()["processors"]), (200, &json!([0.25])));
        let silent = world.ask("GET", "virtualmachineinstances/vm/guestosinfo", "").await;
        assert_eq!(
            silent.line(),
            "500 Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io \"vm\": VMI does not have guest \
             agent connected"
        );
        let path = "virtualmachineinstances/vm/console/cloud-init";
        assert_eq!(world.ask("GET", path, "").await.line(), silent.line());
        world.condition("vm", "AgentConnected").await;
        let told = world.ask("GET", path, "").await;
        assert_eq!((told.code, &told.json()["result"]["v1"]["errors"]), (200, &json!([])));
        let told = world.ask("GET", "virtualmachineinstances/vm/guestosinfo", "").await;
        assert_eq!((told.code, &told.json()["hostname"]), (200, &json!("web")));
        let told = world.ask("GET", "virtualmachineinstances/vm/userlist", "").await;
        assert_eq!(told.json()["items"][0]["userName"], "alice");
        let told = world.ask("GET", "virtualmachineinstances/vm/filesystemlist", "").await;
        assert_eq!(told.json()["items"][0]["mountPoint"], "/");
        let tail = "virtualmachineinstances/vm/console/tail";
        let told = world.ask("GET", tail, "").await;
        assert_eq!(told.line(), "200 login: ");
        assert!(world.machines.taken().contains(&format!(
            "ConsoleTail {{ bytes: 8192 }} of {}|vms/vm on n1",
            world.id
        )));
        let told = world.ask("GET", &format!("{tail}?bytes=100"), "").await;
        assert_eq!(told.code, 200);
        let told = world.ask("GET", &format!("{tail}?bytes=9999999"), "").await;
        assert_eq!(told.line(), "400 bytes must be a number of at most 262144");
        let picture = world.ask("GET", "virtualmachineinstances/vm/vnc/screenshot", "").await;
        assert_eq!((picture.code, picture.kind.as_str()), (200, "image/png"));
        assert!(picture.bytes.starts_with(b"\x89PNG"));
    })
    .await;
}

#[tokio::test]
async fn what_there_is_not_is_told() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        world.instance("vm", "Running").await;
        for (method, path, expected) in [
            (
                "PUT",
                "virtualmachines/vm/memorydump",
                "400 memory dumps are not supported by Fairway",
            ),
            (
                "PUT",
                "virtualmachines/vm/removememorydump",
                "400 memory dumps are not supported",
            ),
            (
                "GET",
                "virtualmachineinstances/vm/sev/fetchcertchain",
                "400 'WorkloadEncryptionSEV' feature gate",
            ),
            (
                "PUT",
                "virtualmachineinstances/vm/sev/setupsession",
                "400 'WorkloadEncryptionSEV' feature gate",
            ),
            (
                "GET",
                "virtualmachineinstances/vm/usbredir",
                "409 Operation cannot be fulfilled on \
                virtualmachineinstance.kubevirt.io \"vm\": Not configured with USB Redirection",
            ),
            (
                "GET",
                "virtualmachineinstances/vm/vsock",
                "400 VSOCK is not attached.",
            ),
            (
                "GET",
                "virtualmachineinstances/vm/vnc/other",
                "404 the server has no vnc/other",
            ),
            (
                "GET",
                "virtualmachineinstances/vm/console",
                "400 this path speaks WebSocket",
            ),
            (
                "PUT",
                "virtualmachines/none/start",
                "404 virtualmachine.kubevirt.io \"none\" not found",
            ),
            ("GET", "virtualmachines/vm/start", "405"),
            ("PUT", "virtualmachineinstances/vm/other", "404"),
        ] {
            let answer = world.ask(method, path, "").await;
            assert!(answer.line().starts_with(expected), "{path}: {}", answer.line());
        }
        for body in [r#"{"paused":"#, r#"{"paused":3}"#] {
            let answer = world.ask("PUT", "virtualmachines/vm/start", body).await;
            assert!(
                answer
                    .line()
                    .starts_with("400 Can not unmarshal Request body to struct, error: "),
                "{}",
                answer.line()
            );
        }
    })
    .await;
}

#[tokio::test]
async fn sizes_are_written_out() {
    everywhere(|world| async move {
        let root = "/apis/instancetype.kubevirt.io/v1beta1";
        world
            .create(
                &format!("{root}/virtualmachineclusterinstancetypes"),
                json!({"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
                    "metadata": {"name": "small"}, "spec": {"cpu": {"guest": 2}, "memory": {"guest": "256Mi"}}}),
            )
            .await;
        world
            .create(
                &format!("{root}/namespaces/vms/virtualmachinepreferences"),
                json!({"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachinePreference",
                    "metadata": {"name": "linux"}, "spec": {"devices": {"preferredDiskBus": "sata"}}}),
            )
            .await;
        let vm = |name: &str, size: Value| {
            json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
                "spec": {
                    "runStrategy": "Halted", "instancetype": size,
                    "preference": {"name": "linux", "kind": "VirtualMachinePreference"},
                    "template": {"spec": {
                        "domain": {"devices": {}}, "volumes": [{"name": "root", "containerDisk": {"image": "x:1"}}],
                    }},
                },
            })
        };
        world.create(MACHINES, vm("sized", json!({"name": "small"}))).await;
        let told = world.ask("GET", "virtualmachines/sized/expand-spec", "").await;
        assert_eq!(told.code, 200, "{}", told.line());
        let spec = &told.json()["spec"];
        assert!(spec["instancetype"].is_null() && spec["preference"].is_null());
        let domain = &spec["template"]["spec"]["domain"];
        assert_eq!(domain["cpu"]["sockets"], 2);
        assert_eq!(domain["memory"]["guest"], "256Mi");
        assert_eq!(domain["devices"]["disks"][0]["disk"]["bus"], "sata");

        let given = vm("given", json!({"name": "small"}));
        let told = world.ask("PUT", "expand-vm-spec", &given.to_string()).await;
        assert_eq!(told.code, 200, "{}", told.line());
        assert_eq!(told.json()["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"], 2);
        let absent = vm("given", json!({"name": "none"}));
        let mut elsewhere = given.clone();
        elsewhere["metadata"]["namespace"] = "other".into();
        for (body, expected) in [
            (String::new(), "400 empty request body"),
            ("{".to_owned(), "400 Can not unmarshal Request body to struct"),
            ("{}".to_owned(), "400 Object is not a valid VirtualMachine"),
            (elsewhere.to_string(), "400 VM namespace must be empty or vms"),
            (absent.to_string(), "400 virtualmachineclusterinstancetypes.instancetype.kubevirt.io \"none\" not found"),
        ] {
            let told = world.ask("PUT", "expand-vm-spec", &body).await;
            assert!(told.line().starts_with(expected), "{}", told.line());
        }
    })
    .await;
}

#[tokio::test]
async fn both_versions_say_what_they_are() {
    everywhere(|world| async move {
        let eve = ("eve", &["system:authenticated"][..]);
        for version in ["v1", "v1alpha3"] {
            let root = format!("/apis/subresources.kubevirt.io/{version}");
            let told = world.ask_as(eve, "GET", &format!("{root}/version"), "").await;
            assert_eq!(told.code, 200, "{}", told.line());
            assert!(told.json()["gitVersion"].as_str().unwrap().starts_with("v1.5.2"));
            let told = world.ask_as(eve, "GET", &format!("{root}/guestfs"), "").await;
            assert_eq!(
                (told.code, &told.json()["guestfs"]["status"]),
                (500, &json!("failed"))
            );
            let told = world
                .ask_as(("admin", MASTERS), "GET", &format!("{root}/healthz"), "")
                .await;
            assert_eq!(
                (told.code, &told.json()["apiserver"]["connectivity"]),
                (200, &json!("ok"))
            );
            let list = world.ask_as(("admin", MASTERS), "GET", &root, "").await.json();
            let all = list["resources"].as_array().unwrap();
            for name in [
                "expand-vm-spec",
                "virtualmachineinstances/console",
                "virtualmachines/start",
            ] {
                assert!(all.iter().any(|it| it["name"] == name), "{version} {name}");
            }
        }
        let group = world
            .ask_as(("admin", MASTERS), "GET", "/apis/subresources.kubevirt.io", "")
            .await;
        assert_eq!(group.json()["preferredVersion"]["version"], "v1");
        world.machine("vm", "Halted").await;
        let path = "/apis/subresources.kubevirt.io/v1alpha3/namespaces/vms/virtualmachines/vm/start";
        assert_eq!(world.ask_as(("admin", MASTERS), "PUT", path, "").await.code, 202);
    })
    .await;
}
