//! kube-rs on this server: what its watcher, reflector and controller expect holds, in the process and without a socket.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_authz::UserInfo;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::json;
use tokio::time::timeout;

use crate::harness::Server;

const PATIENCE: Duration = Duration::from_secs(20);

fn client(server: &Server) -> kube::Client {
    let user = UserInfo::new("controller", ["system:masters".to_owned()]);
    kube::Client::new(InProcess::new(Arc::clone(&server.kernel), user), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.data = Some(BTreeMap::from([("k".to_owned(), value.to_owned())]));
    object
}

#[tokio::test]
async fn the_typed_client_does_its_verbs() {
    let server = Server::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let made = maps
        .create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    assert!(made.metadata.resource_version.is_some());
    let mut changed = made.clone();
    changed
        .data
        .as_mut()
        .unwrap()
        .insert("k".to_owned(), "2".to_owned());
    let stored = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    let stale = maps
        .replace("a", &PostParams::default(), &changed)
        .await
        .unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "x"}, "metadata": {"name": "a"}});
    let applied = maps
        .patch("a", &PatchParams::apply("test"), &Patch::Apply(&applied))
        .await
        .unwrap();
    assert_eq!(applied.data.unwrap().len(), 2);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert!(maps.get_opt("none").await.unwrap().is_none());
    let from = stored.metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let next = timeout(PATIENCE, events.try_next()).await.unwrap().unwrap();
    assert!(matches!(next, Some(WatchEvent::Modified(_))));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let next = timeout(PATIENCE, events.try_next()).await.unwrap().unwrap();
    assert!(matches!(next, Some(WatchEvent::Deleted(_))));
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_reflector_holds_what_the_server_holds() {
    for streaming in [false, true] {
        let server = Server::start().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
        for i in 0..5 {
            maps.create(&PostParams::default(), &config_map(&format!("c{i}"), "0"))
                .await
                .unwrap();
        }
        let (store, writer) = reflector::store();
        let config = if streaming {
            watcher::Config::default().streaming_lists()
        } else {
            watcher::Config::default().page_size(2)
        };
        let events = watcher(maps.clone(), config).default_backoff().reflect(writer);
        let following = tokio::spawn(events.for_each(|_| async {}));
        timeout(PATIENCE, store.wait_until_ready())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(store.state().len(), 5, "streaming {streaming}");
        maps.delete("c0", &DeleteParams::default()).await.unwrap();
        maps.create(&PostParams::default(), &config_map("c9", "0"))
            .await
            .unwrap();
        let patch = json!({"data": {"k": "new"}});
        maps.patch("c1", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        let settled = timeout(PATIENCE, async {
            loop {
                let mut names: Vec<String> = store
                    .state()
                    .iter()
                    .filter_map(|m| m.metadata.name.clone())
                    .collect();
                names.sort();
                let changed = store
                    .state()
                    .iter()
                    .any(|m| m.data.as_ref().is_some_and(|d| d["k"] == "new"));
                if names == ["c1", "c2", "c3", "c4", "c9"] && changed {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        settled.await.expect("the reflector caught up");
        following.abort();
    }
}

#[tokio::test]
async fn a_watcher_starts_anew_after_its_version_is_gone() {
    let server = Server::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    maps.create(&PostParams::default(), &config_map("a", "0"))
        .await
        .unwrap();
    let mut events = watcher(maps.clone(), watcher::Config::default())
        .default_backoff()
        .boxed();
    let mut applied = 0;
    while applied < 1 {
        if let Ok(watcher::Event::InitApply(_)) = timeout(PATIENCE, events.next()).await.unwrap().unwrap() {
            applied += 1;
        }
    }
    for i in 0..50 {
        let patch = json!({"data": {"k": i.to_string()}});
        maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }
    crate::harness::push_out_of_window(&server.admin()).await;
    server.compact(server.revision().await).await;
    let last = timeout(PATIENCE, async {
        loop {
            if let Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) =
                events.next().await.unwrap()
                && map.data.as_ref().unwrap()["k"] == "49"
            {
                return map;
            }
        }
    });
    last.await
        .expect("it comes to the newest state, by relisting if it must");
}

/// The number of times an object was reconciled is written into it: the second write must not lead to a third.
async fn reconcile(map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    let name = map.metadata.name.clone().unwrap_or_default();
    let wanted = map
        .data
        .as_ref()
        .and_then(|d| d.get("k"))
        .cloned()
        .unwrap_or_default()
        .to_uppercase();
    let patch = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"upper": wanted},
    });
    maps.patch(
        &name,
        &PatchParams::apply("shouter").force(),
        &Patch::Apply(&patch),
    )
    .await?;
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_controller_brings_the_world_into_order() {
    let server = Server::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &config_map(name, name))
            .await
            .unwrap();
    }
    let controller = Controller::new(maps.clone(), watcher::Config::default()).run(
        reconcile,
        |_, _: &kube::Error, _| Action::requeue(Duration::from_millis(50)),
        Arc::new(maps.clone()),
    );
    let running = tokio::spawn(controller.for_each(|_| async {}));
    maps.create(&PostParams::default(), &config_map("c", "c"))
        .await
        .unwrap();
    let patch = json!({"data": {"k": "changed"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let settled = timeout(PATIENCE, async {
        loop {
            let list = maps.list(&ListParams::default()).await.unwrap();
            let upper: Vec<String> = list
                .iter()
                .filter_map(|m| m.data.as_ref()?.get("upper").cloned())
                .collect();
            if upper == ["CHANGED", "B", "C"] {
                return list.metadata.resource_version.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let at = settled.await.expect("everything was reconciled");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(
        list.metadata.resource_version.unwrap(),
        at,
        "in order, nothing is written any more"
    );
    running.abort();
}

/// Leader election as client-go does it: whoever can write the Lease leads; the others wait until it is stale.
async fn try_to_lead(leases: &Api<Lease>, me: &str, now: i32) -> bool {
    const STALE: i32 = 2;
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|s| s.lease_transitions).unwrap_or(0);
    let held = |lease: &mut Lease| {
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(me.to_owned());
        // The test has no clock: the moment of renewal is a counter, kept in a field that nobody else needs here.
        spec.lease_transitions = Some(now);
    };
    match leases.get_opt("leader").await.unwrap() {
        None => {
            let mut lease = Lease::default();
            lease.metadata.name = Some("leader".to_owned());
            held(&mut lease);
            leases.create(&PostParams::default(), &lease).await.is_ok()
        }
        Some(mut lease) => {
            let holder = lease.spec.as_ref().and_then(|s| s.holder_identity.clone());
            if holder.as_deref() != Some(me) && now - renewed(&lease) < STALE {
                return false;
            }
            held(&mut lease);
            leases
                .replace("leader", &PostParams::default(), &lease)
                .await
                .is_ok()
        }
    }
}

#[tokio::test]
async fn one_leads_at_a_time() {
    let server = Server::start().await;
    let leases: Api<Lease> = Api::default_namespaced(client(&server));
    let mut last_leader = None;
    for now in 0..30 {
        let candidates = (0..8).map(|i| {
            let leases = leases.clone();
            async move { (i, try_to_lead(&leases, &format!("candidate-{i}"), now).await) }
        });
        let leaders: Vec<i32> = futures::future::join_all(candidates)
            .await
            .into_iter()
            .filter(|(_, led)| *led)
            .map(|(i, _)| i)
            .collect();
        assert!(leaders.len() <= 1, "at {now} there were {leaders:?}");
        if let (Some(before), Some(leader)) = (last_leader, leaders.first()) {
            assert_eq!(before, *leader, "a leader that renews stays");
        }
        last_leader = leaders.first().copied().or(last_leader);
    }
    assert!(last_leader.is_some());
}
