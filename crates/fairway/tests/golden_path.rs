//! Golden paths on the whole program: from a form to a repository, an Application and objects, and all the way back.
// tidy: long: one world, and every way that a run goes through it

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[path = "golden_path/asking.rs"]
mod asking;
#[path = "golden_path/conditions.rs"]
mod conditions;
#[path = "golden_path/ending.rs"]
mod ending;
#[path = "golden_path/foreseen.rs"]
mod foreseen;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[path = "golden_path/quota.rs"]
mod quota;
#[path = "golden_path/telling.rs"]
mod telling;
#[path = "githost/until.rs"]
mod until;
#[path = "golden_path/world.rs"]
mod world;

use fairway_api::fairway::VOYAGE_ANNOTATION;
use serde_json::{Value, json};

use until::until;
use world::{KEY, VOYAGES, World, config_map, phase, steps, template, voyage, voyage_when};

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications";
const MACHINES: &str = "/apis/kubevirt.io/v1/namespaces/user-vms/virtualmachines";

/// Requirements 1 to 5 of the golden path, and decommissioning one of two machines that share a namespace.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_comes_out_of_a_form_and_goes_again() {
    let world = World::start();
    let api = world.api().await;
    let (listed, text) = world.fairway(&["template", "list"]);
    assert!(
        listed && text.contains("template:default/virtual-machine"),
        "{text}"
    );
    let registered = until("the template is registered", async || {
        api.get("/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates/virtual-machine")
            .await
            .unwrap()
    })
    .await;
    assert_eq!(
        registered["metadata"]["annotations"]["fairway.dev/title"],
        "Virtual machine"
    );

    let (done, text) = world.new_machine("web", &["-y"]);
    assert!(done, "{text}");
    assert!(
        text.contains("✓ Make the repository") && text.contains("- Write how it is reached"),
        "{text}"
    );
    let files = world.clone_of("web");
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "README.md",
        "catalog-info.yaml",
        "manifests/cloud-init.yaml",
        "manifests/namespace.yaml",
        "manifests/service.yaml",
        "manifests/ssh.yaml",
        "manifests/virtual-machine.yaml",
    ];
    assert_eq!(names, expected);
    let application = api.get(&format!("{APPLICATIONS}/web")).await.unwrap().unwrap();
    assert_eq!(application["spec"]["source"]["path"], "manifests");
    assert_eq!(
        application["spec"]["syncPolicy"]["automated"],
        json!({"prune": true, "selfHeal": true})
    );
    let machine = until("the machine is synced", async || {
        api.get(&format!("{MACHINES}/web")).await.unwrap()
    })
    .await;
    let managers = machine["metadata"]["managedFields"].to_string();
    assert!(
        managers.contains("argocd-controller") && managers.contains("Apply"),
        "{managers}"
    );
    let namespace = api.get("/api/v1/namespaces/user-vms").await.unwrap().unwrap();
    assert_eq!(
        namespace["metadata"]["annotations"]["argocd.argoproj.io/sync-options"],
        "Prune=false,Delete=false"
    );
    let service = until("the Service", async || {
        api.get("/api/v1/namespaces/user-vms/services/web").await.unwrap()
    })
    .await;
    let ports: Vec<i64> = service["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["port"].as_i64().unwrap())
        .collect();
    assert_eq!(ports, [22, 8080]);
    assert!(
        api.get("/apis/gateway.networking.k8s.io/v1/namespaces/user-vms/gateways/web")
            .await
            .unwrap()
            .is_none()
    );

    // The same name again is refused, and what the first has made stays.
    let (done, text) = world.new_machine("web", &["-y"]);
    assert!(!done && text.contains("exists already"), "{text}");
    assert_eq!(world.clone_of("web").len(), files.len());

    let (done, text) = world.new_machine(
        "api",
        &["-y", "--set", "connectivity=true", "--set", "rateLimit=5"],
    );
    assert!(done, "{text}");
    for path in [
        "/apis/gateway.networking.k8s.io/v1/namespaces/user-vms/gateways/api",
        "/apis/gateway.networking.k8s.io/v1/namespaces/user-vms/httproutes/api",
        "/apis/kuadrant.io/v1/namespaces/user-vms/authpolicies/api",
        "/apis/kuadrant.io/v1/namespaces/user-vms/ratelimitpolicies/api",
        "/apis/extensions.kuadrant.io/v1alpha1/namespaces/user-vms/planpolicies/api-plans",
        "/apis/devportal.kuadrant.io/v1alpha1/namespaces/user-vms/apiproducts/api",
        "/apis/route.openshift.io/v1/namespaces/user-vms/routes/api",
    ] {
        until(path, async || api.get(path).await.unwrap()).await;
    }

    // One of two goes, and the other lives on.
    let voyages = api.list(VOYAGES).await.unwrap();
    let first = voyages
        .iter()
        .find(|voyage| voyage["spec"]["values"]["name"] == "web" && phase(voyage) == "Succeeded");
    let first = first.unwrap()["metadata"]["name"].as_str().unwrap();
    let (done, text) = world.fairway(&["voyage", "decommission", first]);
    assert!(done, "{text}");
    assert!(api.get(&format!("{APPLICATIONS}/web")).await.unwrap().is_none());
    until("the first machine goes", async || {
        api.get(&format!("{MACHINES}/web"))
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    assert!(
        api.get("/apis/fairway.dev/v1alpha1/repositories/web")
            .await
            .unwrap()
            .is_none()
    );
    assert!(api.get(&format!("{MACHINES}/api")).await.unwrap().is_some());
    assert!(api.get("/api/v1/namespaces/user-vms").await.unwrap().is_some());
}

/// The files of the repository that a dry run foresees.
fn files_of(report: &Value) -> std::collections::BTreeMap<String, String> {
    let files = &report["foreseen"]["repositories"][0]["files"];
    let text = |file: &Value, key: &str| file[key].as_str().unwrap().to_owned();
    let files = files.as_array().unwrap().iter();
    files
        .map(|file| (text(file, "path"), text(file, "content")))
        .collect()
}

/// A dry run writes nothing, and what it foresees is what comes to be.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_foresees_and_writes_nothing() {
    let world = World::start();
    let api = world.api().await;
    until("the template is registered", async || {
        api.get("/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates/virtual-machine")
            .await
            .unwrap()
    })
    .await;
    // The revision of the whole store. What happens by itself may come in between; a dry run that wrote something would never leave it.
    let revision = async || {
        let all = api.get("/api/v1/namespaces").await.unwrap().unwrap();
        all["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    };
    let text = until("a dry run leaves the store's revision as it was", async || {
        let before = revision().await;
        let (done, text) = world.new_machine("web", &["-y", "--dry-run", "-o", "json"]);
        assert!(done, "{text}");
        (revision().await == before).then_some(text)
    })
    .await;
    let report: Value = serde_json::from_str(&text).unwrap();
    // Also of what is in the namespace that comes with the run, the server says something.
    let verdicts = report["foreseen"]["manifests"].as_array().unwrap();
    assert!(verdicts.len() >= 5, "{verdicts:#?}");
    assert!(
        verdicts.iter().all(|verdict| verdict["allowed"] == true),
        "{verdicts:#?}"
    );
    let foreseen = files_of(&report);
    let (done, text) = world.new_machine("web", &["-y"]);
    assert!(done, "{text}");
    assert_eq!(world.clone_of("web"), foreseen);
    let published = ["-y", "--set", "connectivity=true"];
    let dry = [&published[..], &["--dry-run", "-o", "json"]].concat();
    let (done, text) = world.new_machine("api", &dry);
    assert!(done, "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        report["foreseen"]["urls"],
        json!([format!("https://api.apps.fairway.localhost{}", world::https().1)]),
        "{report:#}"
    );
    let (done, text) = world.new_machine("api", &published);
    assert!(done, "{text}");
    assert_eq!(world.clone_of("api"), files_of(&report));
    // What cannot be is foreseen, too.
    let (done, text) = world.new_machine("web", &["-y", "--dry-run"]);
    assert!(!done && text.contains("exists already"), "{text}");
    let (done, text) = world.new_machine("Web", &["-y", "--dry-run"]);
    assert!(!done && text.contains("lower-case letters"), "{text}");
}

/// A run that fails takes back what it made; kept, it goes on from where it failed.
#[tokio::test(flavor = "multi_thread")]
async fn failed_runs_are_undone_or_kept() {
    let world = World::start();
    let api = world.api().await;
    let last = json!({"id": "object", "action": "kubernetes:apply", "input": {"manifest":
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${{ parameters.name }}\n  namespace: not-yet-there\n"}});
    template(&api, "failing", steps(None, last)).await;
    voyage(
        &api,
        "undone",
        json!({"template": "failing", "values": {"name": "undone"}}),
    )
    .await;
    let failed = voyage_when(&api, "undone", "it failed", |voyage| phase(voyage) == "Failed").await;
    assert!(
        failed["status"]["message"]
            .as_str()
            .unwrap()
            .contains("step \"object\" failed"),
        "{failed:#}"
    );
    for path in [
        format!("{APPLICATIONS}/undone"),
        "/apis/fairway.dev/v1alpha1/repositories/undone".to_owned(),
    ] {
        assert!(api.get(&path).await.unwrap().is_none(), "{path}");
    }
    voyage(
        &api,
        "kept",
        json!({"template": "failing", "values": {"name": "kept"}, "keepOnFailure": true}),
    )
    .await;
    voyage_when(&api, "kept", "it failed", |voyage| phase(voyage) == "Failed").await;
    assert!(api.get(&format!("{APPLICATIONS}/kept")).await.unwrap().is_some());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-yet-there"}});
    api.create("/api/v1/namespaces", &namespace).await.unwrap();
    let (done, text) = world.fairway(&["voyage", "retry", "kept"]);
    assert!(done, "{text}");
    assert!(
        api.get("/api/v1/namespaces/not-yet-there/configmaps/kept")
            .await
            .unwrap()
            .is_some()
    );

    // Refused before anything is done: an action that is not known, and answers that are not good.
    template(
        &api,
        "unknown",
        json!([{"id": "first", "action": "debug:log"}, {"id": "strange", "action": "publish:github"}]),
    )
    .await;
    voyage(&api, "unknown", json!({"template": "unknown"})).await;
    let refused = voyage_when(&api, "unknown", "it is refused", |voyage| {
        phase(voyage) == "Failed"
    })
    .await;
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("\"strange\"") && message.contains("publish:github"),
        "{message}"
    );
    assert_eq!(refused["status"]["steps"], json!([]));
}

/// `kill -9` at every boundary between two steps: the run goes on where it was, and everything is there once.
#[tokio::test(flavor = "multi_thread")]
async fn runs_survive_being_killed_at_every_step() {
    let mut world = World::start();
    // Long enough that somebody who looks on a busy machine sees each.
    let pause = json!({"action": "debug:wait", "input": {"milliseconds": 2_000}});
    let mut slow = steps(Some(&pause), config_map());
    let more = [
        json!({"id": "register", "action": "catalog:register", "input": {
            "repoContentsUrl": "${{ steps.publish.output.repoContentsUrl }}"}}),
        json!({"id": "again", "action": "catalog:register", "input": {
            "repoContentsUrl": "${{ steps.publish.output.repoContentsUrl }}", "catalogInfoPath": "manifests/service.yaml"}}),
        // Nobody listens there: what matters is that it is told once.
        json!({"id": "tell", "action": "notification:send", "input": {"title": "done", "webhook": "http://127.0.0.1:9/"}}),
    ];
    for (at, step) in more.into_iter().enumerate() {
        let mut pause = pause.clone();
        pause["id"] = format!("pause-{}", 4 + at).into();
        slow.as_array_mut().unwrap().extend([step, pause]);
    }
    template(&world.api().await, "slow", slow).await;
    voyage(
        &world.api().await,
        "killed",
        json!({"template": "slow", "values": {"name": "killed"}}),
    )
    .await;
    let mut hit = 0;
    for at in 0..7 {
        let api = world.api().await;
        let seen = voyage_when(&api, "killed", &format!("pause {at} is reached"), |voyage| {
            voyage["status"]["steps"][2 * at + 1]["state"] == "running"
                || matches!(phase(voyage), "Succeeded" | "Failed")
        })
        .await;
        hit += usize::from(phase(&seen) == "Running");
        world.restart();
    }
    assert!(hit >= 5, "only {hit} of 7 kills hit a run that ran");
    let api = world.api().await;
    let done = voyage_when(&api, "killed", "it is over", |voyage| {
        phase(voyage) == "Succeeded" || phase(voyage) == "Failed"
    })
    .await;
    assert_eq!(phase(&done), "Succeeded", "{done:#}");
    assert!(done.to_string().contains("taken up again"), "{done:#}");
    let bare = world.data().join("repositories/root/killed.git");
    let log = std::process::Command::new("git")
        .arg("-C")
        .arg(&bare)
        .args(["rev-list", "--count", "main"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&log.stdout).trim(),
        "1",
        "one commit, however often it was begun"
    );
    assert!(
        api.get("/api/v1/namespaces/default/configmaps/killed")
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        api.get(&format!("{APPLICATIONS}/killed"))
            .await
            .unwrap()
            .is_some()
    );
    // Once each: what it was registered under, twice over, and what was told.
    let first = ending::location(&api, "killed").await;
    let first = api.get(&first.expect("it is registered")).await.unwrap().unwrap();
    let all = api
        .list("/apis/fairway.dev/v1alpha1/cataloglocations")
        .await
        .unwrap();
    let of_it = |it: &&Value| it["spec"]["target"].as_str().unwrap().contains("/killed/");
    let of_run = |it: &&Value| it["metadata"]["annotations"][VOYAGE_ANNOTATION] == done["metadata"]["uid"];
    assert_eq!(
        all.iter().filter(of_it).count(),
        2,
        "both files are registered: {all:#?}"
    );
    assert_eq!(
        all.iter().filter(of_run).count(),
        2,
        "and both are the run's: {all:#?}"
    );
    assert!(
        first["spec"]["target"]
            .as_str()
            .unwrap()
            .ends_with("/catalog-info.yaml")
    );
    let notices = done["status"]["notices"].as_array().unwrap();
    assert_eq!(notices.len(), 1, "{notices:#?}");
}

/// Two runs for the last free place of a quota: one is let, the other is told before anything is written to Git.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_place_of_a_quota_is_given_once() {
    let world = World::start();
    let api = world.api().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "user-vms"}});
    api.create("/api/v1/namespaces", &namespace).await.unwrap();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "machines", "namespace": "user-vms"},
        "spec": {"hard": {"count/virtualmachines.kubevirt.io": "1"}},
    });
    let quotas = "/api/v1/namespaces/user-vms/resourcequotas";
    api.create(quotas, &quota).await.unwrap();
    until("the quota is counted", async || {
        let quota = api.get(&format!("{quotas}/machines")).await.unwrap()?;
        quota["status"]["hard"].is_object().then_some(())
    })
    .await;
    let key = format!("sshKey={KEY}");
    let start = |name: &str| {
        let named = format!("name={name}");
        let words = ["new", "virtual-machine", "-y", "--set", &named, "--set", &key];
        let mut command = world.command(&words);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let runs = [start("one"), start("two")];
    let ended: Vec<(bool, String)> = runs
        .into_iter()
        .map(|run| world::said(&run.wait_with_output().unwrap()))
        .collect();
    let accepted = ended.iter().filter(|(done, _)| *done).count();
    assert_eq!(accepted, 1, "{ended:?}");
    let refused = ended.iter().find(|(done, _)| !done).unwrap();
    assert!(
        refused.1.contains("no room in namespace user-vms") && refused.1.contains("exceeded quota"),
        "{}",
        refused.1
    );
    assert_eq!(
        api.list("/apis/fairway.dev/v1alpha1/repositories")
            .await
            .unwrap()
            .len(),
        1
    );
}

/// A run may what its user may: nothing more, and nobody starts one in another's name.
#[tokio::test(flavor = "multi_thread")]
async fn runs_act_with_the_rights_of_their_user() {
    let world = World::start();
    let api = world.api().await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "bob", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    });
    api.create(&format!("{rbac}/namespaces/default/rolebindings"), &binding)
        .await
        .unwrap();
    let as_bob = async |method: &str, path: &str, body: &Value| -> Result<Value, kube::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("impersonate-user", "bob")
            .header(
                "content-type",
                if method == "PATCH" {
                    "application/merge-patch+json"
                } else {
                    "application/json"
                },
            );
        world
            .client()
            .await
            .request(request.body(body.to_string().into_bytes()).unwrap())
            .await
    };
    let forged = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage", "metadata": {"name": "forged", "namespace": "default"},
        "spec": {"template": "virtual-machine", "values": {"name": "mine", "sshKey": KEY},
            "requestedBy": {"username": "root", "groups": ["system:masters"]}},
    });
    let made = as_bob("POST", VOYAGES, &forged).await.unwrap();
    assert_eq!(made["spec"]["requestedBy"]["username"], "bob");
    let failed = voyage_when(&api, "forged", "it is over", |voyage| phase(voyage) == "Failed").await;
    let message = failed["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("forbidden") && message.contains("bob"),
        "{message}"
    );
    assert!(
        api.list("/apis/fairway.dev/v1alpha1/repositories")
            .await
            .unwrap()
            .is_empty()
    );
    // He cannot say what a run has made, nor run it again as somebody else.
    let status = json!({"status": {"phase": "Succeeded"}});
    assert!(
        as_bob("PATCH", &format!("{VOYAGES}/forged/status"), &status)
            .await
            .is_err()
    );
    voyage(&api, "admins", json!({"template": "unknown"})).await;
    voyage_when(&api, "admins", "it failed", |voyage| phase(voyage) == "Failed").await;
    let again = as_bob(
        "PATCH",
        &format!("{VOYAGES}/admins"),
        &json!({"spec": {"attempt": 1}}),
    )
    .await;
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("acts with the rights of who started it")
    );
}

/// A mail server that is down delays the mail and nothing else; when it is there, the mail arrives.
#[tokio::test(flavor = "multi_thread")]
async fn mail_waits_and_the_run_does_not() {
    let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/venv/bin/python");
    let has_server = std::process::Command::new(&python)
        .args(["-c", "import aiosmtpd"])
        .output();
    if !has_server.is_ok_and(|it| it.status.success()) {
        println!("SKIPPED: there is no aiosmtpd; `scripts/tools.sh python` installs it");
        return;
    }
    let world = World::start();
    let api = world.api().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-gitops"}});
    api.create("/api/v1/namespaces", &namespace).await.unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm", "namespace": "openshift-gitops"},
        "data": {"service.email": format!("host: 127.0.0.1\nport: {port}\nfrom: fairway@example.com\n")},
    });
    api.create("/api/v1/namespaces/openshift-gitops/configmaps", &config)
        .await
        .unwrap();
    let (done, text) = world.new_machine("web", &["-y", "--set", "email=ann@example.com"]);
    assert!(done, "{text}");
    let voyages = api.list(VOYAGES).await.unwrap();
    let name = voyages[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let waiting = voyage_when(&api, &name, "the mail was tried", |voyage| {
        voyage["status"]["notices"][0]["attempts"].as_u64() > Some(0)
    })
    .await;
    assert_eq!(phase(&waiting), "Succeeded");
    assert_eq!(waiting["status"]["notices"][0]["state"], "waiting", "{waiting:#}");
    let script = "import sys,time,json\nfrom aiosmtpd.controller import Controller\n\
        class Taker:\n  async def handle_DATA(self, server, session, envelope):\n    print(json.dumps([envelope.rcpt_tos, envelope.content.decode()]), flush=True)\n    return '250 OK'\n\
        Controller(Taker(), hostname='127.0.0.1', port=int(sys.argv[1])).start()\nsys.stdin.read()\n";
    let mut server = std::process::Command::new(&python)
        .args(["-c", script, &port.to_string()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    voyage_when(&api, &name, "the mail was sent", |voyage| {
        voyage["status"]["notices"][0]["state"] == "sent"
    })
    .await;
    drop(server.stdin.take());
    let output = server.wait_with_output().unwrap();
    let mails: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(mails.len(), 1, "{mails:?}");
    assert_eq!(mails[0][0], json!(["ann@example.com"]));
    assert!(
        mails[0][1]
            .as_str()
            .unwrap()
            .contains("Virtual machine web is on its way"),
        "{mails:?}"
    );
}

/// Backstage's API: a task is started, followed and shown by whoever has a token, and by nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn backstages_api_is_answered() {
    let world = World::start();
    let api = world.api().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "portal", "namespace": "default"}});
    api.create("/api/v1/namespaces/default/serviceaccounts", &account)
        .await
        .unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "portal"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "portal", "namespace": "default"}],
    });
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)
        .await
        .unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = api
        .post(
            "/api/v1/namespaces/default/serviceaccounts/portal/token",
            &request,
        )
        .await
        .unwrap();
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let running: Value =
        serde_json::from_slice(&std::fs::read(world.data().join("running.json")).unwrap()).unwrap();
    let port = running["web_listen"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let call = |words: &[&str], path: &str| {
        let output = std::process::Command::new("curl")
            .args(["-sS", "--cacert"])
            .arg(world.data().join("pki/ca.crt"))
            .args([
                "--resolve",
                &format!("portal.fairway.localhost:{port}:127.0.0.1"),
                "-w",
                "\n%{http_code}",
            ])
            .args(words)
            .arg(format!(
                "https://portal.fairway.localhost:{port}/api/scaffolder/{path}"
            ))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, code) = text.rsplit_once('\n').unwrap();
        (code.parse::<u16>().unwrap(), body.to_owned())
    };
    if std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("SKIPPED: there is no curl");
        return;
    }
    assert_eq!(call(&[], "v2/actions").0, 401);
    let bearer = format!("authorization: Bearer {token}");
    let (code, text) = call(&["-H", &bearer], "v2/actions");
    assert!(code == 200 && text.contains("fetch:template"), "{code} {text}");
    let (code, text) = call(
        &["-H", &bearer],
        "v2/templates/default/template/virtual-machine/parameter-schema",
    );
    assert!(code == 200 && text.contains("SSH public key"), "{code} {text}");
    let task = |values: Value| {
        json!({"templateRef": "template:default/virtual-machine", "values": values}).to_string()
    };
    let bad = task(json!({"name": "Web"}));
    let (code, text) = call(&["-H", &bearer, "-d", &bad], "v2/tasks");
    assert!(code == 400 && text.contains("errors"), "{code} {text}");
    let good = task(json!({"name": "web", "sshKey": KEY}));
    let (code, text) = call(&["-H", &bearer, "-d", &good], "v2/tasks");
    assert_eq!(code, 201, "{text}");
    let id = serde_json::from_str::<Value>(&text).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, text) = call(
        &["-H", &bearer, "-N", "--max-time", "60"],
        &format!("v2/tasks/{id}/eventstream"),
    );
    assert!(
        code == 200
            && text.contains("event: completion")
            && text.contains("Finished step Make the repository"),
        "{text}"
    );
    let (_, text) = call(&["-H", &bearer], &format!("v2/tasks/{id}"));
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (shown["status"].as_str(), shown["createdBy"].as_str()),
        (Some("completed"), Some("user:default/portal")),
        "{text}"
    );
    let (code, text) = call(&["-H", &bearer, "-d", &good], "v2/dry-run");
    assert!(code == 200 && text.contains("exists already"), "{code} {text}");
}
