//! What becomes of changes: some are made while the guest runs, others need a restart, which Git may ask for.

use serde_json::{Value, json};

use crate::harness::{MACHINES, World, a_while, condition, everywhere};

const TEMPLATE: &str = "a non-live-updatable field was changed in the template spec";

fn template(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

impl World {
    /// Changes a machine as a sync from Git does.
    async fn sync(&self, name: &str, patch: Value) {
        let path = format!("{MACHINES}/{name}?fieldManager=argocd-controller");
        assert!(self.api.merge(&path, &patch).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn what_can_be_changed_while_the_guest_runs_is() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        let most = before["spec"]["domain"]["cpu"]["maxSockets"].as_u64().unwrap();
        assert!(most >= 2, "it can grow: {most}");
        world
            .patch("web", template(json!({"domain": {"cpu": {"sockets": 2}}})))
            .await;
        world
            .until_instance("web", "grown", |it| it["spec"]["domain"]["cpu"]["sockets"] == 2)
            .await;
        world
            .patch("web", template(json!({"domain": {"memory": {"guest": "2Gi"}}})))
            .await;
        world
            .until_instance("web", "grown", |it| {
                it["spec"]["domain"]["memory"]["guest"] == "2Gi"
            })
            .await;
        world
            .patch(
                "web",
                template(json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]})),
            )
            .await;
        world
            .until_instance("web", "tolerant", |it| {
                it["spec"]["tolerations"][0]["key"] == "gpu"
            })
            .await;
        let labels = json!({"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}});
        world.patch("web", labels).await;
        let after = world
            .until_instance("web", "labelled", |it| {
                it["metadata"]["labels"]["tier"] == "front"
            })
            .await;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        let metadata = json!({"labels": {"tier": null}, "annotations": {"note": "a"}});
        let lost = json!({"spec": {"template": {"metadata": metadata}}});
        world.patch("web", lost).await;
        let after = world
            .until_instance("web", "annotated, and no longer labelled", |it| {
                it["metadata"]["labels"]["tier"].is_null() && it["metadata"]["annotations"]["note"] == "a"
            })
            .await;
        let node = "kubevirt.io/nodeName";
        assert_eq!(
            after["metadata"]["labels"][node],
            before["metadata"]["labels"][node]
        );
        assert!(after["metadata"]["labels"][node].is_string());
        let vm = world.vm("web").await;
        assert_eq!(condition(&vm, "RestartRequired"), None);
        assert_eq!(world.host.starts("web"), 1);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn other_changes_wait_for_a_person() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let before = world.vmi("web").await;
        let cores = |count: u32| template(json!({"domain": {"cpu": {"cores": count}}}));
        world.patch("web", cores(2)).await;
        let vm = world
            .until("web", "in need of a restart", |it| {
                condition(it, "RestartRequired").is_some()
            })
            .await;
        assert_eq!(condition(&vm, "RestartRequired").unwrap().2, TEMPLATE);
        assert_ne!(
            vm["status"]["observedGeneration"],
            vm["status"]["desiredGeneration"]
        );
        // Who takes it back needs no restart.
        world.patch("web", cores(1)).await;
        world
            .until("web", "as it was", |it| {
                condition(it, "RestartRequired").is_none()
                    && it["status"]["observedGeneration"] == it["metadata"]["generation"]
            })
            .await;
        world.patch("web", cores(4)).await;
        world
            .until("web", "in need of a restart", |it| {
                condition(it, "RestartRequired").is_some()
            })
            .await;
        a_while().await;
        assert_eq!(
            world.vmi("web").await["metadata"]["uid"],
            before["metadata"]["uid"]
        );
        let stop = json!({"stateChangeRequests": [{"action": "Stop", "uid": before["metadata"]["uid"]}]});
        world.patch_status("web", stop).await;
        let after = world.runs_anew("web", &before).await;
        assert_eq!(after["spec"]["domain"]["cpu"]["cores"], 4);
        world
            .until("web", "settled", |it| {
                condition(it, "RestartRequired").is_none() && it["status"]["printableStatus"] == "Running"
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn changes_from_git_restart_the_machine() {
    everywhere(|world| async move {
        let strategies = ["Always", "Manual", "RerunOnFailure", "Once"];
        for strategy in strategies {
            let name = strategy.to_lowercase();
            world
                .machine(&name, json!({"spec": {"runStrategy": strategy}}))
                .await;
            if strategy == "Manual" {
                world
                    .patch_status(&name, json!({"stateChangeRequests": [{"action": "Start"}]}))
                    .await;
            }
            world.shows(&name, "Running").await;
            let before = world.vmi(&name).await;
            world
                .sync(&name, template(json!({"domain": {"cpu": {"cores": 2}}})))
                .await;
            let after = world.runs_anew(&name, &before).await;
            assert_eq!(after["spec"]["domain"]["cpu"]["cores"], 2);
            let vm = world
                .until(&name, "settled", |it| {
                    it["status"]["printableStatus"] == "Running"
                        && it["status"]["stateChangeRequests"].is_null()
                })
                .await;
            assert_eq!(condition(&vm, "RestartRequired"), None);
            world
                .event(&name, "Restarting the virtual machine for a change from Git")
                .await;
            assert_eq!(world.host.starts(&name), 2, "{strategy}");
            world
                .patch(&name, json!({"spec": {"runStrategy": "Halted"}}))
                .await;
        }
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn git_does_not_restart_what_it_need_not_or_must_not() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world
            .machine(
                "slow",
                json!({"metadata": {"annotations": {"fairway.dev/restart": "manual"}}}),
            )
            .await;
        world.shows("web", "Running").await;
        world.shows("slow", "Running").await;
        let before = world.vmi("web").await;
        // Something that can be changed while it runs, and something that concerns no instance.
        let sockets = json!({"domain": {"cpu": {"sockets": 2}}});
        world.sync("web", template(sockets)).await;
        world
            .sync("web", json!({"metadata": {"labels": {"a": "b"}}}))
            .await;
        world
            .until_instance("web", "grown", |it| it["spec"]["domain"]["cpu"]["sockets"] == 2)
            .await;
        world
            .sync("slow", template(json!({"domain": {"cpu": {"cores": 2}}})))
            .await;
        world
            .until("slow", "in need of a restart", |it| {
                condition(it, "RestartRequired").is_some()
            })
            .await;
        a_while().await;
        assert_eq!(
            world.vmi("web").await["metadata"]["uid"],
            before["metadata"]["uid"]
        );
        assert_eq!(world.host.starts("slow"), 1);
        // A person's change stays a person's, also when Git writes something else afterwards.
        world
            .patch("web", template(json!({"domain": {"cpu": {"cores": 2}}})))
            .await;
        world
            .sync("web", json!({"metadata": {"labels": {"a": "c"}}}))
            .await;
        a_while().await;
        assert_eq!(world.host.starts("web"), 1);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_rollout_strategy_may_keep_all_changes_for_the_next_start() {
    everywhere(|world| async move {
        let settings = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},
            "spec": {"configuration": {"vmRolloutStrategy": "Stage"}},
        });
        world
            .create("/apis/kubevirt.io/v1/namespaces/vms/kubevirts", settings)
            .await;
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        world
            .patch("web", template(json!({"domain": {"cpu": {"sockets": 2}}})))
            .await;
        world
            .until("web", "in need of a restart", |it| {
                condition(it, "RestartRequired").is_some()
            })
            .await;
        assert_eq!(world.vmi("web").await["spec"]["domain"]["cpu"]["sockets"], 1);
        // Settings that change are taken up: now it can be done while the guest runs.
        let live = json!({"spec": {"configuration": {"vmRolloutStrategy": "LiveUpdate"}}});
        let place = "/apis/kubevirt.io/v1/namespaces/vms/kubevirts/kubevirt";
        world.api.merge(place, &live).await.unwrap();
        let vm = world
            .until("web", "looked at again", |it| {
                condition(it, "RestartRequired").is_none_or(|it| it.2 != TEMPLATE)
            })
            .await;
        // The instance was made without room to grow.
        let why = condition(&vm, "RestartRequired")
            .map(|it| it.2)
            .unwrap_or_default();
        assert!(why.contains("higher than what's available"), "{why}");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn volumes_whose_content_cannot_move_are_told_of() {
    everywhere(|world| async move {
        world.fill("old", "n1").await;
        world.fill("new", "n1").await;
        let on = |claim: &str| {
            let mut change = template(json!({
                "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": claim}}],
            }));
            change["spec"]["updateVolumesStrategy"] = json!("Migration");
            change
        };
        world.machine("web", on("old")).await;
        world.shows("web", "Running").await;
        world.sync("web", on("new")).await;
        let vm = world
            .until("web", "told of", |it| condition(it, "Failure").is_some())
            .await;
        let (_, reason, message) = condition(&vm, "Failure").unwrap();
        assert_eq!(reason, "VolumesUpdateError");
        assert!(message.contains("the content of root is not copied"), "{message}");
        assert!(condition(&vm, "RestartRequired").is_some());
        a_while().await;
        assert_eq!(world.host.starts("web"), 1, "nobody starts it with empty disks");
        world.end().await;
    })
    .await;
}
