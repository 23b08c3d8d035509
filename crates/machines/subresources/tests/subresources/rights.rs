//! Who may ask for what: KubeVirt's roles, on KubeVirt's subresources.

use crate::machines::MACHINES;
use crate::world::{SUBRESOURCES, everywhere};

const PEOPLE: &[&str] = &["system:authenticated"];

#[tokio::test]
async fn who_may_look_may_not_touch() {
    everywhere(|world| async move {
        world.machine("vm", "Manual").await;
        world.instance("vm", "Running").await;
        world.condition("vm", "AgentConnected").await;
        world.bind("viewer", "kubevirt.io:view").await;
        world.bind("editor", "kubevirt.io:edit").await;
        world.bind("mover", "kubevirt.io:migrate").await;
        // Method and path; who of viewer, editor and mover may.
        for (method, path, may) in [
            (
                "GET",
                "virtualmachineinstances/vm/guestosinfo",
                [true, true, false],
            ),
            (
                "GET",
                "virtualmachineinstances/vm/guestosinfo/usage/history",
                [true, true, false],
            ),
            ("GET", "virtualmachineinstances/vm/userlist", [true, true, false]),
            (
                "GET",
                "virtualmachineinstances/vm/console/cloud-init",
                [false, true, false],
            ),
            ("GET", "virtualmachines/vm/expand-spec", [true, true, false]),
            (
                "GET",
                "virtualmachineinstances/vm/vnc/screenshot",
                [false, true, false],
            ),
            (
                "PUT",
                "virtualmachineinstances/vm/softreboot",
                [false, true, false],
            ),
            ("PUT", "virtualmachineinstances/vm/pause", [false, true, false]),
            // A backup is everything that is on the disks.
            ("GET", "virtualmachineinstances/vm/backup", [false, true, false]),
            ("PUT", "virtualmachineinstances/vm/backup", [false, true, false]),
            ("PUT", "virtualmachines/vm/migrate", [false, false, true]),
            ("PUT", "virtualmachines/vm/stop", [false, true, false]),
        ] {
            for (user, may) in ["viewer", "editor", "mover"].into_iter().zip(may) {
                let answer = world
                    .ask_as((user, PEOPLE), method, &format!("{SUBRESOURCES}/{path}"), "")
                    .await;
                assert_eq!(answer.code != 403, may, "{user} {path}: {}", answer.line());
            }
            if path.ends_with("expand-spec") || path.ends_with("list") || path.contains("info") {
                continue;
            }
            let anonymous = ("system:anonymous", &["system:unauthenticated"][..]);
            let answer = world
                .ask_as(anonymous, method, &format!("{SUBRESOURCES}/{path}"), "")
                .await;
            assert_eq!(answer.code, 403, "{path}");
        }
        // What an editor asked for was done in the name of the service, which may do what he may not.
        let vm = world.get(&format!("{MACHINES}/vm")).await;
        assert_eq!(vm["status"]["stateChangeRequests"][0]["action"], "Stop");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consoles_are_for_those_who_may() {
    everywhere(|world| async move {
        world.machine("vm", "Always").await;
        world.instance("vm", "Running").await;
        world.bind("viewer", "kubevirt.io:view").await;
        world.bind("editor", "kubevirt.io:edit").await;
        if world.id != "root" {
            world.let_in("viewer").await;
            world.let_in("editor").await;
        }
        for path in [
            "virtualmachineinstances/vm/console",
            "virtualmachineinstances/vm/vnc",
            "virtualmachineinstances/vm/portforward/22",
            "virtualmachines/vm/portforward/22/tcp",
        ] {
            let refused = world.open_as(("viewer", &[]), path).await.err().unwrap();
            assert_eq!(refused.code, 403, "{path}: {}", refused.line());
            assert!(
                refused.line().contains("cannot get resource"),
                "{}",
                refused.line()
            );
            assert_eq!(world.machines.taken(), Vec::<String>::new());
            world.open_as(("editor", &[]), path).await.unwrap();
            assert_eq!(world.machines.taken().len(), 1, "{path}");
        }
    })
    .await;
}
