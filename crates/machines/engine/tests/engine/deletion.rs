//! How machines end.

use serde_json::{Value, json};

use crate::harness::{INSTANCES, MACHINES, REVISIONS, a_while, eventually, everywhere};
use crate::host::Manner;

#[tokio::test]
async fn a_machine_goes_when_its_guest_has_ended() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        world.api.delete(&format!("{MACHINES}/web")).await.unwrap();
        world.until("web", "gone", Value::is_null).await;
        assert!(world.vmi("web").await.is_null(), "the instance went first");
        eventually("records go, too", || async {
            world.api.list(REVISIONS).await.unwrap().is_empty()
        })
        .await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_waits_for_a_node_that_does_not_answer() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        world.host.lose("n1");
        world.api.delete(&format!("{MACHINES}/web")).await.unwrap();
        world.shows("web", "Terminating").await;
        a_while().await;
        assert!(!world.vmi("web").await.is_null());
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_that_never_had_a_node() {
    everywhere(|world| async move {
        let nowhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}});
        world.machine("web", nowhere).await;
        world.shows("web", "ErrorUnschedulable").await;
        world.api.delete(&format!("{MACHINES}/web")).await.unwrap();
        world.until("web", "gone", Value::is_null).await;
        world.until_instance("web", "gone", Value::is_null).await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_instance_whose_machine_was_torn_away_is_let_go() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let force = json!({"metadata": {"finalizers": []}});
        world.api.delete(&format!("{MACHINES}/web")).await.unwrap();
        let _ = world.api.merge(&format!("{MACHINES}/web"), &force).await;
        world.until("web", "gone", Value::is_null).await;
        world.until_instance("web", "gone", Value::is_null).await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_machine_of_the_same_name_waits_for_the_other_ones_instance() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        world.shows("web", "Running").await;
        let first = world.vmi("web").await;
        // It has no finalizer any more, so it goes at once, and its instance stays for a while.
        world.host.lose("n1");
        world.api.delete(&format!("{MACHINES}/web")).await.unwrap();
        let force = json!({"metadata": {"finalizers": []}});
        world.api.merge(&format!("{MACHINES}/web"), &force).await.unwrap();
        world.until("web", "gone", Value::is_null).await;
        world.machine("web", json!({})).await;
        world
            .until("web", "in trouble", |it| {
                let failure = crate::harness::condition(it, "Failure");
                failure.is_some_and(|it| it.2.contains("belongs to VirtualMachine web"))
            })
            .await;
        assert_eq!(
            world.vmi("web").await["metadata"]["uid"],
            first["metadata"]["uid"]
        );
        world.host.join_again("n1");
        world.runs_anew("web", &first).await;
        world.shows("web", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_instance_that_hangs_can_be_deleted() {
    everywhere(|world| async move {
        world.host.manner("web", Manner::Hang);
        world.machine("web", json!({})).await;
        world.shows("web", "Starting").await;
        let first = world
            .until_instance("web", "placed", |it| it["status"]["phase"] == "Scheduled")
            .await;
        world.host.manner("web", Manner::Well);
        world.api.delete(&format!("{INSTANCES}/web")).await.unwrap();
        world
            .until_instance("web", "another or gone", |it| {
                it["metadata"]["uid"] != first["metadata"]["uid"]
            })
            .await;
        world.end().await;
    })
    .await;
}
