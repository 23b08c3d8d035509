//! Runs that ask the platform's own APIs, and that propose a change instead of making it.

use serde_json::json;

use crate::world::{World, phase, steps, template, voyage, voyage_when};

/// The catalog answers a run as its user; what he may not see is not answered, and other hosts are not asked.
#[tokio::test(flavor = "multi_thread")]
async fn runs_ask_the_portal_and_open_pull_requests() {
    let world = World::start();
    let api = world.api().await;
    let file = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: proposed\n";
    let ask = json!({"id": "ask", "action": "http:backstage:request", "input": {
        "path": "catalog/entities", "params": {"filter": "kind=template", "fields": "metadata.name"},
    }});
    let mut all = steps(None, ask);
    let more = [
        // What the catalog shows is fetched, whether a file or an object says it.
        json!({"id": "fetch", "action": "catalog:fetch", "input": {"entityRef": "template:default/virtual-machine"}}),
        json!({"id": "file", "action": "catalog:write", "input": {"filePath": "manifests/proposed.yaml", "entity": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "proposed"}}}}),
        json!({"id": "propose", "action": "publish:gitea:pull-request", "input": {
            "repoUrl": "fairway?repo=${{ parameters.name }}", "branchName": "change", "title": "Propose ${{ steps.ask.output.code }}",
        }}),
    ];
    all.as_array_mut().unwrap().extend(more);
    template(&api, "asking", all).await;
    voyage(
        &api,
        "asks",
        json!({"template": "asking", "values": {"name": "asks"}}),
    )
    .await;
    let ended = voyage_when(&api, "asks", "it is over", |voyage| {
        matches!(phase(voyage), "Succeeded" | "Failed")
    })
    .await;
    assert_eq!(phase(&ended), "Succeeded", "{ended:#}");
    let output = |id: &str| {
        let steps = ended["status"]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["id"] == id);
        step.unwrap()["output"].clone()
    };
    assert_eq!(output("ask")["code"], 200, "{ended:#}");
    assert!(
        output("ask")["body"].to_string().contains("virtual-machine"),
        "{ended:#}"
    );
    assert_eq!(
        output("fetch")["entity"]["metadata"]["name"],
        "virtual-machine",
        "{ended:#}"
    );
    assert_eq!(output("propose")["pullRequestNumber"], 1, "{ended:#}");
    let git = |words: &[&str]| {
        let bare = world.data().join("repositories/root/asks.git");
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(bare)
            .args(words)
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    let changed = git(&["diff", "--name-only", "main", "change"]);
    assert_eq!(changed.trim(), "manifests/proposed.yaml");
    assert_eq!(git(&["show", "change:manifests/proposed.yaml"]), file);

    // What leads elsewhere, and runs that start runs, are refused.
    for (name, path, method, words) in [
        (
            "out",
            "https://example.com/api/catalog",
            "GET",
            "other hosts are not asked",
        ),
        (
            "again",
            "/api/scaffolder//v2/t%61sks/",
            "POST",
            "runs do not start runs",
        ),
        (
            "none",
            "/api/catalog/entities/by-name/component/default/none",
            "GET",
            "answered with 404",
        ),
    ] {
        let step = json!([{"id": "ask", "action": "http:backstage:request", "input": {"path": path, "method": method}}]);
        template(&api, name, step).await;
        voyage(&api, name, json!({"template": name})).await;
        let failed = voyage_when(&api, name, "it failed", |voyage| phase(voyage) == "Failed").await;
        let message = failed["status"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}
