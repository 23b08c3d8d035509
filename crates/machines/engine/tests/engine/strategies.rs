//! When machines run: every strategy, what people ask for, and guests that crash.

use serde_json::json;

use crate::harness::{INSTANCES, REVISIONS, a_while, condition, everywhere};
use crate::host::Manner;

#[tokio::test]
async fn always() {
    everywhere(|world| async move {
        world.machine("web", json!({})).await;
        let vm = world.shows("web", "Running").await;
        assert_eq!(condition(&vm, "Ready").unwrap().0, "True");
        assert_eq!(vm["status"]["created"], true);
        assert_eq!(vm["status"]["ready"], true);
        assert_eq!(vm["status"]["runStrategy"], "Always");
        assert_eq!(vm["status"]["desiredGeneration"], vm["metadata"]["generation"]);
        assert_eq!(vm["status"]["observedGeneration"], vm["metadata"]["generation"]);
        assert_eq!(vm["metadata"]["finalizers"][0], "kubevirt.io/virtualMachineControllerFinalize");
        let vmi = world.vmi("web").await;
        assert_eq!(vmi["metadata"]["ownerReferences"][0]["uid"], vm["metadata"]["uid"]);
        assert_eq!(vmi["status"]["nodeName"], "n1");
        assert_eq!(vmi["metadata"]["labels"]["kubevirt.io/nodeName"], "n1");
        let record = vmi["status"]["virtualMachineRevisionName"].as_str().unwrap();
        let record = world.api.get(&format!("{REVISIONS}/{record}")).await.unwrap().unwrap();
        assert_eq!(record["data"]["spec"]["template"], vm["spec"]["template"]);
        world
            .event("web", "SuccessfulCreate Started the virtual machine by creating the new virtual machine instance web")
            .await;
        // A guest that ends by itself is started again.
        let stop = json!({"stateChangeRequests": [{"action": "Stop", "uid": vmi["metadata"]["uid"]}]});
        world.patch_status("web", stop).await;
        let again = world.runs_anew("web", &vmi).await;
        world.settles("web", "Running").await;
        assert_ne!(again["metadata"]["uid"], vmi["metadata"]["uid"]);
        assert_eq!(world.host.starts("web"), 2);
        assert_eq!(world.api.list(REVISIONS).await.unwrap().len(), 1, "one record is kept");
        world.patch("web", json!({"spec": {"runStrategy": "Halted"}})).await;
        world
            .until("web", "without an instance", |it| {
                let ready = condition(it, "Ready").unwrap();
                it["status"]["printableStatus"] == "Stopped" && ready.1 == "VMINotExists"
            })
            .await;
        assert!(world.vmi("web").await.is_null());
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn the_old_way_to_say_it() {
    everywhere(|world| async move {
        let running = json!({"spec": {"runStrategy": null, "running": true}});
        world.machine("web", running).await;
        world.shows("web", "Running").await;
        world.patch("web", json!({"spec": {"running": false}})).await;
        world.shows("web", "Stopped").await;
        world
            .patch_status("web", json!({"stateChangeRequests": [{"action": "Start"}]}))
            .await;
        let vm = world.shows("web", "Running").await;
        assert_eq!(vm["spec"]["running"], true);
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn manual() {
    everywhere(|world| async move {
        world
            .machine("web", json!({"spec": {"runStrategy": "Manual"}}))
            .await;
        world.shows("web", "Stopped").await;
        a_while().await;
        assert!(world.vmi("web").await.is_null());
        let paused = json!({"stateChangeRequests": [{"action": "Start", "data": {"paused": "true"}}]});
        world.patch_status("web", paused).await;
        world.settles("web", "Running").await;
        let vmi = world.vmi("web").await;
        assert_eq!(vmi["spec"]["startStrategy"], "Paused");
        // A restart is a stop and a start.
        let restart = json!([{"action": "Stop", "uid": vmi["metadata"]["uid"]}, {"action": "Start"}]);
        world
            .patch_status("web", json!({"stateChangeRequests": restart}))
            .await;
        let again = world.runs_anew("web", &vmi).await;
        world.shows("web", "Running").await;
        let stop = json!({"stateChangeRequests": [{"action": "Stop", "uid": again["metadata"]["uid"]}]});
        world.patch_status("web", stop).await;
        world.settles("web", "Stopped").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn rerun_on_failure() {
    everywhere(|world| async move {
        world
            .machine("web", json!({"spec": {"runStrategy": "RerunOnFailure"}}))
            .await;
        world.shows("web", "Running").await;
        let vmi = world.vmi("web").await;
        world.host.manner("web", Manner::Crash);
        world
            .until_instance("web", "gone or another", |it| {
                it["metadata"]["uid"] != vmi["metadata"]["uid"]
            })
            .await;
        world.host.manner("web", Manner::Well);
        world.runs_anew("web", &vmi).await;
        // Who shuts it down wants it to stay down.
        world.api.delete(&format!("{INSTANCES}/web")).await.unwrap();
        world.shows("web", "Stopped").await;
        a_while().await;
        assert!(world.vmi("web").await.is_null());
        world
            .patch_status("web", json!({"stateChangeRequests": [{"action": "Start"}]}))
            .await;
        world.shows("web", "Running").await;
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn once_and_halted() {
    everywhere(|world| async move {
        world
            .machine("once", json!({"spec": {"runStrategy": "Once"}}))
            .await;
        world.shows("once", "Running").await;
        world
            .machine("halted", json!({"spec": {"runStrategy": "Halted"}}))
            .await;
        world.shows("halted", "Stopped").await;
        a_while().await;
        assert!(world.vmi("halted").await.is_null());
        world
            .patch_status("halted", json!({"stateChangeRequests": [{"action": "Start"}]}))
            .await;
        let vm = world.shows("halted", "Running").await;
        assert_eq!(vm["spec"]["runStrategy"], "Always");
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_guest_that_crashes_is_started_later_and_later() {
    everywhere(|world| async move {
        world.host.manner("web", Manner::Crash);
        world.machine("web", json!({})).await;
        let vm = world.shows("web", "CrashLoopBackOff").await;
        let failure = &vm["status"]["startFailure"];
        assert_eq!(failure["consecutiveFailCount"], 1);
        assert!(failure["retryAfterTimestamp"].is_string() && failure["lastFailedVMIUID"].is_string());
        a_while().await;
        assert_eq!(world.host.starts("web"), 1, "it waits");
        // As if the time had come.
        let due = json!({"startFailure": {"retryAfterTimestamp": "2026-01-01T00:00:00Z"}});
        world.patch_status("web", due.clone()).await;
        world
            .until("web", "failed twice", |it| {
                it["status"]["startFailure"]["consecutiveFailCount"] == 2
                    && it["status"]["printableStatus"] == "CrashLoopBackOff"
            })
            .await;
        world.host.manner("web", Manner::Well);
        world.patch_status("web", due).await;
        let vm = world.shows("web", "Running").await;
        // Its host says that it has run since long ago.
        assert!(vm["status"]["startFailure"].is_null());
        world.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_ends_in_between_goes_on() {
    everywhere(|mut world| async move {
        for round in 0..3 {
            let name = format!("web{round}");
            world.machine(&name, json!({})).await;
            world.kill_engine();
            world.start_engine();
            world.shows(&name, "Running").await;
            assert_eq!(world.host.starts(&name), 1);
        }
        world.end().await;
    })
    .await;
}
