//! What `git push` says, with the whole program and plain `git`: what the commit changes, the sync as it runs, and how it ends. When
//! the push returns, it is done.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "answers/world.rs"]
mod world;

use std::time::{Duration, Instant};

use serde_json::json;

use world::{World, has_line, map};

#[tokio::test(flavor = "multi_thread")]
async fn a_push_says_what_becomes_of_it() {
    let world = World::start("lamps").await;
    world.push(
        &[
            map("lamps", "red", "bright"),
            map("lamps", "blue", "dark"),
            map("hall", "hat", "grey"),
        ],
        "",
    );
    world
        .application("lamps", "lamps", json!({"automated": {"prune": true}}))
        .await;
    world.application("hall", "hall", json!({})).await;
    world.wait("lamps").await;

    // One is changed, one comes, one goes. When the push returns, it is done: nobody waits for anything here.
    let said = world.push(
        &[
            map("lamps", "red", "dim"),
            map("lamps", "green", "bright"),
            "git rm -q lamps/blue.yaml".to_owned(),
        ],
        "",
    );
    for line in [
        "argocd/lamps at ",
        ": 1 to create, 1 to change, 1 to prune",
        "  + ConfigMap house/green",
        "  ~ ConfigMap house/red",
        "  - ConfigMap house/blue",
        "argocd/lamps: wave 0: ConfigMap house/blue pruned",
        "argocd/lamps: wave 0: ConfigMap house/green created",
        "argocd/lamps: wave 0: ConfigMap house/red configured",
        "argocd/lamps: Synced and Healthy ",
    ] {
        assert!(has_line(&said, line), "{line}\n{said}");
    }
    assert!(!said.contains("hall"), "{said}");
    assert_eq!(world.says("red").await.as_deref(), Some("dim"));
    assert_eq!(world.says("green").await.as_deref(), Some("bright"));
    assert_eq!(world.says("blue").await, None);

    // What no Application depends on is not spoken of, and what does not sync by itself says how it does.
    let said = world.push(&["echo hello > README".to_owned()], "");
    assert!(!said.contains("argocd/"), "{said}");
    let said = world.push(&[map("hall", "hat", "black")], "");
    assert!(
        has_line(
            &said,
            "argocd/hall: OutOfSync, and it does not sync by itself: fairway app sync argocd/hall"
        ),
        "{said}"
    );
    assert!(!said.contains("argocd/lamps"), "{said}");

    // Whoever does not want to hear it says so: here, or in the Repository.
    for options in ["-o fairway.wait=false", "-o no-answer"] {
        let said = world.push(&[map("lamps", "red", &format!("x{}", options.len()))], options);
        assert!(!said.contains("argocd/"), "{said}");
    }
    let said = world.push(&[map("lamps", "red", "brief")], "-o fairway.wait=brief");
    assert!(
        has_line(&said, "argocd/lamps: Synced and Healthy ") && !said.contains('~'),
        "{said}"
    );
    world.repository(json!({"pushAnswers": "Off"})).await;
    let said = world.push(&[map("lamps", "red", "quiet")], "");
    assert!(!said.contains("argocd/"), "{said}");
    let said = world.push(&[map("lamps", "red", "loud")], "-o fairway.wait=30");
    assert!(has_line(&said, "argocd/lamps: Synced and Healthy "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_names_what_it_changes_alone() {
    let world = World::start("lamps").await;
    let many: Vec<String> = (0..12).map(|n| map("lamps", &format!("m{n}"), "x")).collect();
    world.push(&many, "");
    let policy = json!({"automated": {"prune": true}, "syncOptions": ["ServerSideApply=true"]});
    world.application("lamps", "lamps", policy).await;
    world.wait("lamps").await;

    let said = world.push(&[map("lamps", "m7", "y")], "");
    let results = said.lines().filter(|line| line.contains(": wave "));
    assert_eq!(results.count(), 1, "{said}");
    for line in [
        "  ~ ConfigMap house/m7",
        "argocd/lamps: wave 0: ConfigMap house/m7 serverside-applied",
        "argocd/lamps: Synced and Healthy ",
    ] {
        assert!(has_line(&said, line), "{line}\n{said}");
    }
    // The Application tells of all that was applied, as Argo CD's does.
    let found = world.get("lamps").await;
    let results = &found["status"]["operationState"]["syncResult"]["resources"];
    assert_eq!(results.as_array().map(Vec::len), Some(12), "{results}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_says_why_not() {
    let world = World::start("lamps").await;
    let many: Vec<String> = (0..12).map(|n| map("lamps", &format!("m{n}"), "x")).collect();
    world.push(&[many, vec![map("lamps", "red", "bright")]].concat(), "");
    let policy = json!({"automated": {"prune": true}, "retry": {"limit": 0}});
    world.application("lamps", "lamps", policy).await;
    world.wait("lamps").await;

    // What cannot be rendered.
    let said = world.push(&["echo 'kind: [' > lamps/bad.yaml".to_owned()], "");
    assert!(
        has_line(
            &said,
            "argocd/lamps: cannot be compared: Failed to load target state"
        ),
        "{said}"
    );
    // What the API refuses.
    let service = "printf 'apiVersion: v1\\nkind: Service\\nmetadata: {name: s}\\nspec: {ports: [{port: 99999}]}\\n' > lamps/bad.yaml";
    let said = world.push(&[service.to_owned()], "");
    assert!(
        has_line(&said, "argocd/lamps: OutOfSync: Failed last sync attempt"),
        "{said}"
    );
    assert!(said.contains("99999") || said.contains("65535"), "{said}");
    // What would delete too much waits for somebody, and goes on when he says so.
    let said = world.push(&["git rm -q lamps/m*.yaml lamps/bad.yaml".to_owned()], "");
    assert!(
        has_line(
            &said,
            "argocd/lamps: waiting for approval: the sync would delete 12 objects"
        ),
        "{said}"
    );
    assert!(world.says("m0").await.is_some());
    world.fairway(&["app", "approve", "lamps"]);
    world.wait("lamps").await;
    assert_eq!(world.says("m0").await, None);

    // What takes longer than the pusher wants to wait goes on without him: a kind that nobody has defined yet.
    let widget =
        "printf 'apiVersion: example.org/v1\\nkind: Widget\\nmetadata: {name: w}\\n' > lamps/widget.yaml";
    let begun = Instant::now();
    let said = world.push(&[widget.to_owned()], "-o fairway.wait=2");
    assert!(
        has_line(
            &said,
            "argocd/lamps: waiting for the kind example.org/Widget of w to be defined"
        ),
        "{said}"
    );
    assert!(
        has_line(
            &said,
            "after 2 s this goes on in the background; follow it with: fairway app wait argocd/lamps"
        ),
        "{said}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    // A newer commit takes its place.
    let said = world.push(&["git rm -q lamps/widget.yaml".to_owned()], "");
    assert!(has_line(&said, "argocd/lamps: Synced and Healthy "), "{said}");
}
