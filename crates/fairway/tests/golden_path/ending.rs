//! How runs end that do not go straight: taken back by who may not, deleted midway, killed while they act or undo.

use std::time::Duration;

use serde_json::{Value, json};

use crate::until::until;
use crate::world::{KEY, VOYAGES, World, bind, config_map, phase, steps, template, voyage, voyage_when};
use crate::{APPLICATIONS, MACHINES};

const REPOSITORIES: &str = "/apis/fairway.dev/v1alpha1/repositories";
const LOCATIONS: &str = "/apis/fairway.dev/v1alpha1/cataloglocations";

/// The path of the one location that leads to a repository's catalog file, if there is one.
pub(crate) async fn location(api: &fairway_controller::Requests, repository: &str) -> Option<String> {
    let within = format!("/{repository}/src/branch/main/catalog-info.yaml");
    let all = api.list(LOCATIONS).await.unwrap();
    let mut found = all.iter().filter(|location| {
        let target = location["spec"]["target"].as_str().unwrap();
        target.ends_with(&within)
    });
    let one = found.next()?;
    assert!(
        found.next().is_none(),
        "{repository} is registered twice: {all:#?}"
    );
    Some(format!("{LOCATIONS}/{}", one["metadata"]["name"].as_str()?))
}

async fn succeeded(api: &fairway_controller::Requests, name: &str) -> Value {
    let ended = voyage_when(api, name, "it is over", |voyage| {
        matches!(phase(voyage), "Succeeded" | "Failed")
    })
    .await;
    assert_eq!(phase(&ended), "Succeeded", "{ended:#}");
    ended
}

/// Whoever may not take back what a run made strands it for nobody: what is left is named, and somebody with the rights takes it up.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_decommission_strands_nothing() {
    let world = World::start();
    let api = world.api().await;
    bind(&api, "bob", "edit", "default").await;
    template(&api, "small", steps(None, config_map())).await;
    voyage(
        &api,
        "left",
        json!({"template": "small", "values": {"name": "left"}}),
    )
    .await;
    succeeded(&api, "left").await;
    let path = format!("{VOYAGES}/left");
    let wish = json!({"spec": {"decommission": true}});
    world.ask_as("bob", "PATCH", &path, &wish).await.unwrap();
    let stuck = voyage_when(&api, "left", "what cannot go is named", |voyage| {
        voyage["status"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("still there"))
    })
    .await;
    assert_eq!(phase(&stuck), "Decommissioning", "it is tried again: {stuck:#}");
    let begun = json!({"spec": {"decommission": false}});
    assert!(world.ask_as("bob", "PATCH", &path, &begun).await.is_err());
    let failed = voyage_when(&api, "left", "it is given up", |voyage| phase(voyage) == "Failed").await;
    let message = failed["status"]["message"].as_str().unwrap();
    for words in [
        "repository root/left",
        "Application openshift-gitops/left",
        "forbidden",
        "bob",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    // What he may take back is gone.
    let config_map = "/api/v1/namespaces/default/configmaps/left";
    assert!(api.get(config_map).await.unwrap().is_none());
    let (done, text) = world.fairway(&["voyage", "decommission", "left"]);
    assert!(done, "{text}");
    let gone = api.get(&path).await.unwrap().unwrap();
    assert_eq!(phase(&gone), "Decommissioned");
    assert_eq!(gone["status"]["message"].as_str().unwrap_or(""), "");
    assert_ne!(gone["spec"]["decommissionedBy"]["username"], "bob");
    for path in [format!("{APPLICATIONS}/left"), format!("{REPOSITORIES}/left")] {
        assert!(api.get(&path).await.unwrap().is_none(), "{path}");
    }
}

/// Deleting a run that is under way ends it and takes back what it made; deleting one that is over deletes the record alone.
#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_run_is_all_or_nothing() {
    let world = World::start();
    let api = world.api().await;
    let pause = json!({"action": "debug:wait", "input": {"seconds": 300}});
    template(&api, "small", steps(None, config_map())).await;
    // The pauses behind the publishing step keep the run where it is.
    let mut slow = steps(Some(&pause), config_map());
    slow.as_array_mut()
        .unwrap()
        .retain(|step| step["id"] != "pause-0" && step["id"] != "pause-1");
    template(&api, "paused", slow).await;
    voyage(
        &api,
        "midway",
        json!({"template": "paused", "values": {"name": "midway"}}),
    )
    .await;
    voyage_when(&api, "midway", "it waits", |voyage| {
        voyage["status"]["steps"][3]["state"] == "running"
    })
    .await;
    assert!(
        api.get(&format!("{APPLICATIONS}/midway"))
            .await
            .unwrap()
            .is_some()
    );
    api.delete(&format!("{VOYAGES}/midway")).await.unwrap();
    until("the Voyage is gone", async || {
        let voyage = api.get(&format!("{VOYAGES}/midway")).await.unwrap();
        voyage.is_none().then_some(())
    })
    .await;
    for path in [format!("{APPLICATIONS}/midway"), format!("{REPOSITORIES}/midway")] {
        assert!(api.get(&path).await.unwrap().is_none(), "{path} is left behind");
    }

    voyage(
        &api,
        "over",
        json!({"template": "small", "values": {"name": "over"}}),
    )
    .await;
    succeeded(&api, "over").await;
    api.delete(&format!("{VOYAGES}/over")).await.unwrap();
    until("the record is gone", async || {
        let voyage = api.get(&format!("{VOYAGES}/over")).await.unwrap();
        voyage.is_none().then_some(())
    })
    .await;
    for path in [format!("{APPLICATIONS}/over"), format!("{REPOSITORIES}/over")] {
        assert!(api.get(&path).await.unwrap().is_some(), "{path}");
    }
}

/// Many runs that wait keep nobody else waiting, and each hears at once that it is to stop.
#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_keep_nobody_waiting() {
    let world = World::start();
    let api = world.api().await;
    let wait = json!([{"id": "wait", "action": "debug:wait", "each": [1, 2, 3], "input": {"minutes": 10}}]);
    template(&api, "waiting", wait).await;
    for at in 0..40 {
        voyage(&api, &format!("waits-{at}"), json!({"template": "waiting"})).await;
    }
    for at in 0..40 {
        voyage_when(&api, &format!("waits-{at}"), "it waits", |voyage| {
            voyage["status"]["steps"][0]["state"] == "running"
        })
        .await;
    }
    let short =
        json!([{"id": "wait", "action": "debug:wait", "each": [1, 2], "input": {"milliseconds": 200}}]);
    template(&api, "short", short).await;
    voyage(&api, "quick", json!({"template": "short"})).await;
    let quick = succeeded(&api, "quick").await;
    let log = quick["status"]["steps"][0]["log"].to_string();
    assert_eq!(log.matches("waiting for 0.2 s").count(), 2, "{log}");
    let stop = json!({"spec": {"cancel": true}});
    api.merge(&format!("{VOYAGES}/waits-0"), &stop).await.unwrap();
    voyage_when(&api, "waits-0", "it is stopped", |voyage| {
        phase(voyage) == "Cancelled"
    })
    .await;
}

/// The steps of a run that were begun and not done in the moment when somebody looked.
fn under_way(voyage: &Value) -> Vec<String> {
    let steps = voyage["status"]["steps"].as_array();
    let running = steps.into_iter().flatten().filter(|it| it["state"] == "running");
    running
        .map(|it| it["id"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Looks at a run until something has happened in it, and kills the server in that moment; what the run was doing.
async fn kill_when(world: &mut World, name: &str, holds: impl Fn(&Value) -> bool) -> (String, Vec<String>) {
    let api = world.api().await;
    let path = format!("{VOYAGES}/{name}");
    let begun = std::time::Instant::now();
    let seen = loop {
        let voyage = api.get(&path).await.unwrap().unwrap();
        let is_over = matches!(phase(&voyage), "Succeeded" | "Failed" | "Decommissioned");
        if is_over || holds(&voyage) {
            break voyage;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{name} does not get on: {voyage:#}"
        );
    };
    drop(api);
    world.restart();
    (phase(&seen).to_owned(), under_way(&seen))
}

/// `kill -9` at any moment of the built-in path, of its undoing and of its decommissioning: in the end all is there, or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_path_survives_being_killed_while_it_acts() {
    let mut world = World::start();
    // Each is killed once, when so many of its steps are done: wherever it is then, it is in the midst of it.
    let mut hit = Vec::new();
    for (done, name) in ["web", "web1", "web2", "web3"].into_iter().enumerate() {
        let values = json!({"name": name, "sshKey": KEY, "connectivity": true});
        let api = world.api().await;
        voyage(
            &api,
            name,
            json!({"template": "virtual-machine", "values": values}),
        )
        .await;
        let got_on = |voyage: &Value| {
            let steps = voyage["status"]["steps"].as_array();
            let ended = steps
                .into_iter()
                .flatten()
                .filter(|it| it["state"] == "completed");
            phase(voyage) == "Running" && ended.count() >= done
        };
        hit.push(kill_when(&mut world, name, got_on).await);
    }
    let running = hit.iter().filter(|(phase, _)| phase == "Running").count();
    println!("runs were killed while they did {hit:?}");
    assert!(
        running >= 3,
        "only {running} of the kills hit a run that ran: {hit:?}"
    );
    let api = world.api().await;
    for name in ["web1", "web2", "web3", "web"] {
        succeeded(&api, name).await;
        assert!(location(&api, name).await.is_some(), "{name} is registered once");
    }
    let registered = location(&api, "web").await;
    let things = [
        format!("{APPLICATIONS}/web"),
        format!("{REPOSITORIES}/web"),
        registered.expect("it is registered"),
    ];
    for path in &things {
        assert!(api.get(path).await.unwrap().is_some(), "{path}");
    }
    let entity = "/apis/fairway.dev/v1alpha1/catalogentities/component.default.web";
    until("the catalog knows it", async || api.get(entity).await.unwrap()).await;
    until("the machine is synced", async || {
        api.get(&format!("{MACHINES}/web")).await.unwrap()
    })
    .await;
    let wish = json!({"spec": {"decommission": true}});
    api.merge(&format!("{VOYAGES}/web"), &wish).await.unwrap();
    drop(api);
    let undoing = |voyage: &Value| phase(voyage) == "Decommissioning";
    let hit = [
        kill_when(&mut world, "web", undoing).await,
        kill_when(&mut world, "web", undoing).await,
    ];
    println!("the decommissioning was killed at {hit:?}");
    assert_eq!(hit[0].0, "Decommissioning", "a kill hits it on its way");
    let api = world.api().await;
    voyage_when(&api, "web", "it is decommissioned", |voyage| {
        phase(voyage) == "Decommissioned"
    })
    .await;
    for path in &things {
        assert!(api.get(path).await.unwrap().is_none(), "{path}");
    }
    until("the catalog forgets it", async || {
        api.get(entity).await.unwrap().is_none().then_some(())
    })
    .await;
    until("the machine goes", async || {
        let machine = api.get(&format!("{MACHINES}/web")).await.unwrap();
        machine.is_none().then_some(())
    })
    .await;

    // A run that fails in its last step, killed while it is undone.
    let last = json!({"id": "object", "action": "kubernetes:apply", "input": {"manifest":
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: not-there\n"}});
    let mut failing = steps(None, last);
    let register = json!({"id": "register", "action": "catalog:register", "input": {
        "repoContentsUrl": "${{ steps.publish.output.repoContentsUrl }}"}});
    failing.as_array_mut().unwrap().insert(3, register);
    template(&api, "failing", failing).await;
    voyage(
        &api,
        "fails",
        json!({"template": "failing", "values": {"name": "fails"}}),
    )
    .await;
    voyage_when(&api, "fails", "it is undone", |voyage| {
        matches!(phase(voyage), "Undoing" | "Failed")
    })
    .await;
    drop(api);
    for millis in [0, 60] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        world.restart();
    }
    let api = world.api().await;
    let failed = voyage_when(&api, "fails", "it failed", |voyage| phase(voyage) == "Failed").await;
    let said = failed.to_string();
    let mut entries = said.split("catalog entry ").skip(1);
    assert!(
        entries.any(|rest| {
            let (entry, rest) = rest.split_once(' ').unwrap_or_default();
            // Killed in between, it finds what the catalog has made of the repository, which goes with that.
            let ends = ["was taken back", "was left: it does not belong to this run"];
            entry.contains("-fails-main-") && ends.iter().any(|end| rest.starts_with(end))
        }),
        "{failed:#}"
    );
    for path in [format!("{APPLICATIONS}/fails"), format!("{REPOSITORIES}/fails")] {
        assert!(api.get(&path).await.unwrap().is_none(), "{path}");
    }
    assert_eq!(location(&api, "fails").await, None);
}

/// What was there before a run is changed back when the run fails, unless somebody has changed it since; and runs start no runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_before_is_changed_back() {
    let world = World::start();
    let api = world.api().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let known = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "known", "namespace": "default"},
        "data": {"kept": "same", "other": "his"},
    });
    api.create(maps, &known).await.unwrap();
    let apply = |id: &str, manifest: &str| json!({"id": id, "action": "kubernetes:apply", "input": {"namespace": "default", "manifest": manifest}});
    let change =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: known\ndata: {more: mine, kept: same}\n";
    let fresh = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fresh\ndata: {a: b}\n";
    let run = "apiVersion: fairway.dev/v1alpha1\nkind: Voyage\nmetadata:\n  name: again\nspec: {template: changing}\n";
    template(
        &api,
        "changing",
        json!([apply("change", change), apply("fresh", fresh), apply("run", run)]),
    )
    .await;
    voyage(&api, "changes", json!({"template": "changing"})).await;
    let failed = voyage_when(&api, "changes", "it failed", |voyage| phase(voyage) == "Failed").await;
    let message = failed["status"]["message"].as_str().unwrap();
    assert!(message.contains("runs do not start runs"), "{message}");
    let now = api.get(&format!("{maps}/known")).await.unwrap().unwrap();
    assert_eq!(now["data"], known["data"], "{failed:#}");
    assert_eq!(
        now["metadata"]["annotations"]["fairway.dev/voyage"],
        Value::Null,
        "it is not the run's own"
    );
    assert!(api.get(&format!("{maps}/fresh")).await.unwrap().is_none());
    assert!(
        failed
            .to_string()
            .contains("the change of ConfigMap default/known was taken back")
    );
    assert!(api.get(&format!("{VOYAGES}/again")).await.unwrap().is_none());
}
