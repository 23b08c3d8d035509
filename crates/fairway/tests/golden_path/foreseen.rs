//! What a dry run says of addresses, nodes, quotas and admission, and that it comes to be.

use std::net::TcpStream;

use fairway_controller::Requests;
use serde_json::{Value, json};

use crate::until::until;
use crate::world::{World, https, template};

/// Nobody else's gateways are there.
const ADDRESS: &str = "127.0.0.7";

fn report(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn is_registered(api: &Requests) -> Value {
    until("the template is registered", async || {
        api.get("/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates/virtual-machine")
            .await
            .unwrap()
    })
    .await
}

/// The built-in path publishes below the domain of the installation, and what it prints leads there.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_those_at_which_something_is_served() {
    let world = World::start_with(&[
        "--gateway-domain",
        "apps.example.test",
        "--gateway-address",
        ADDRESS,
    ]);
    let api = world.api().await;
    let registered = is_registered(&api).await.to_string();
    assert!(
        registered.contains("shop.apps.example.test") && !registered.contains("fairway.localhost"),
        "{registered}"
    );
    let (port, written) = https();
    let address = format!("https://api.apps.example.test{written}");
    let published = ["-y", "--set", "connectivity=true"];
    let (done, text) = world.new_machine("api", &[&published[..], &["--dry-run", "-o", "json"]].concat());
    assert!(done, "{text}");
    let foreseen = report(&text);
    assert_eq!(foreseen["foreseen"]["urls"], json!([address]), "{foreseen:#}");
    let is_shown = |report: &Value| {
        let links = report["output"]["links"].as_array().unwrap();
        links.iter().any(|link| link["url"] == address.as_str())
    };
    assert!(is_shown(&foreseen), "{foreseen:#}");
    let (done, text) = world.new_machine("api", &published);
    assert!(done && text.contains(&address), "{text}");
    let catalog = &world.clone_of("api")["catalog-info.yaml"];
    assert!(catalog.contains(&format!("\"{address}\"")), "{catalog}");
    until("somebody listens where the address leads", async || {
        TcpStream::connect((ADDRESS, port)).ok()
    })
    .await;
}

/// A template whose machine needs no disk, and so no image.
async fn diskless(api: &Requests, name: &str, memory: &str) {
    let machine = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name, "namespace": "steps"},
        "spec": {"runStrategy": "Always", "template": {"spec": {
            "nodeSelector": {"example.com/disk": "fast"},
            "domain": {"memory": {"guest": memory}, "devices": {}},
        }}},
    });
    let steps = json!([
        {"id": "write", "action": "catalog:write", "input": {"filePath": "machine.yaml", "entity": machine}},
        {"id": "publish", "action": "publish:gitea", "input": {"repoUrl": format!("fairway?repo={name}")}},
        {"id": "deploy", "action": "argocd:create-resources", "input": {
            "appName": name, "repoUrl": "${{ steps.publish.output.remoteUrl }}", "path": ".", "namespace": "steps"}},
    ]);
    template(api, name, steps).await;
}

async fn namespace(api: &Requests, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    assert!(api.create("/api/v1/namespaces", &object).await.unwrap());
}

/// The node that is foreseen is the one that the real run's machine gets.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_foreseen() {
    let world = World::start();
    let api = world.api().await;
    namespace(&api, "steps").await;
    for name in ["slow", "swift"] {
        let disk = if name == "swift" { "fast" } else { "slow" };
        let labels = json!({"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64", "example.com/disk": disk});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        assert!(api.create("/api/v1/nodes", &node).await.unwrap());
        let status = json!({"status": {
            "allocatable": {"cpu": "4", "memory": "8Gi"}, "capacity": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        }});
        api.merge(&format!("/api/v1/nodes/{name}/status"), &status)
            .await
            .unwrap();
    }
    diskless(&api, "little", "64Mi").await;
    diskless(&api, "vast", "64Gi").await;
    let dry = |name: &str| world.fairway(&["new", name, "-y", "--dry-run", "-o", "json"]);
    let found = until("the nodes are known", async || {
        let (done, text) = dry("little");
        assert!(done, "{text}");
        let found = report(&text)["foreseen"]["node"].clone();
        (found[0]["scheduled"] == true).then_some(found)
    })
    .await;
    assert_eq!(
        found,
        json!([{"namespace": "steps", "name": "little", "node": "swift", "scheduled": true}])
    );
    let (done, text) = world.fairway(&["new", "little", "-y", "--dry-run"]);
    assert!(done && text.contains("Node of steps/little: swift"), "{text}");
    let (done, text) = world.fairway(&["new", "little", "-y"]);
    assert!(done, "{text}");
    let instance = "/apis/kubevirt.io/v1/namespaces/steps/virtualmachineinstances/little";
    let given = until("the machine has a node", async || {
        let instance = api.get(instance).await.unwrap()?;
        Some(instance["status"]["nodeName"].as_str()?.to_owned())
    })
    .await;
    assert_eq!(given, found[0]["node"].as_str().unwrap());
    let (_, text) = dry("vast");
    let found = &report(&text)["foreseen"]["node"][0];
    let words = found["node"].as_str().unwrap();
    assert!(
        found["scheduled"] == false
            && words.starts_with("none: 0/")
            && words.contains("1 Insufficient memory"),
        "{found:#}"
    );
}

/// Where no machines run, that is what is foreseen.
#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_foreseen_where_none_is() {
    let world = World::start_with(&["--no-machines"]);
    let api = world.api().await;
    is_registered(&api).await;
    let (_, text) = world.new_machine("web", &["-y", "--dry-run", "-o", "json"]);
    let report = report(&text);
    assert_eq!(
        report["foreseen"]["node"][0]["node"], "no node runs machines here",
        "{report:#}"
    );
    assert_eq!(report["foreseen"]["quota"], json!([]), "{report:#}");
}

/// What a quota has left and what the run takes is said, whether it is enough or not.
#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_foreseen() {
    let world = World::start();
    let api = world.api().await;
    is_registered(&api).await;
    namespace(&api, "user-vms").await;
    let quotas = "/api/v1/namespaces/user-vms/resourcequotas";
    let counted = "count/virtualmachines.kubevirt.io";
    for (hard, left, fits) in [("2", "2", true), ("0", "0", false)] {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "machines", "namespace": "user-vms"},
            "spec": {"hard": {counted: hard}},
        });
        api.apply(&format!("{quotas}/machines"), &quota, "test", true)
            .await
            .unwrap();
        until("the quota is counted", async || {
            let quota = api.get(&format!("{quotas}/machines")).await.unwrap()?;
            (quota["status"]["hard"][counted] == hard).then_some(())
        })
        .await;
        let (done, text) = world.new_machine("web", &["-y", "--dry-run", "-o", "json"]);
        assert_eq!(done, fits, "{text}");
        let report = report(&text);
        assert_eq!(
            report["foreseen"]["quota"],
            json!([{
                "namespace": "user-vms", "name": "machines", "resource": counted, "hard": hard, "used": "0", "left": left,
                "takes": "1",
            }]),
            "{report:#}"
        );
        let problem = report["foreseen"]["problem"].as_str().unwrap_or("");
        assert_eq!(
            problem.contains("no room in namespace user-vms"),
            !fits,
            "{problem}"
        );
        let (_, text) = world.new_machine("web", &["-y", "--dry-run"]);
        assert!(
            text.contains(&format!("takes 1 of {left} left (0 of {hard} used)")),
            "{text}"
        );
    }
    let written = api.list("/apis/fairway.dev/v1alpha1/repositories").await.unwrap();
    assert!(written.is_empty(), "{written:?}");
}

/// What admission refuses is foreseen in its words.
#[tokio::test(flavor = "multi_thread")]
async fn admission_is_foreseen() {
    let world = World::start();
    let api = world.api().await;
    is_registered(&api).await;
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "closed"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["kubevirt.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["virtualmachines"]}]},
            "validations": [{"expression": "false", "message": "no machines on Sundays"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "closed"},
        "spec": {"policyName": "closed", "validationActions": ["Deny"]},
    });
    api.create(&format!("{admission}/validatingadmissionpolicies"), &policy)
        .await
        .unwrap();
    api.create(
        &format!("{admission}/validatingadmissionpolicybindings"),
        &binding,
    )
    .await
    .unwrap();
    let text = until("the policy is enforced", async || {
        let (done, text) = world.new_machine("web", &["-y", "--dry-run", "-o", "json"]);
        (!done).then_some(text)
    })
    .await;
    let report = report(&text);
    let verdicts = report["foreseen"]["manifests"].as_array().unwrap();
    let refused: Vec<&Value> = verdicts.iter().filter(|it| it["allowed"] == false).collect();
    assert_eq!(refused.len(), 1, "{verdicts:#?}");
    assert_eq!(refused[0]["kind"], "VirtualMachine");
    let said = refused[0]["message"].as_str().unwrap();
    assert!(said.contains("no machines on Sundays"), "{said}");
    // Nobody looks for a node for what is refused.
    assert_eq!(report["foreseen"]["node"], json!([]), "{report:#}");
    let (done, text) = world.new_machine("web", &["-y", "--dry-run"]);
    assert!(
        !done && text.contains("REFUSED: ") && text.contains("no machines on Sundays"),
        "{text}"
    );
}
