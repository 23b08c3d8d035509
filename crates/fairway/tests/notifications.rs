//! Notifications with the whole program: a real mail server, a webhook and Slack are told of syncs, once each, also over a restart.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[path = "notifications/receivers.rs"]
mod receivers;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;
#[path = "githost/until.rs"]
mod until;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use fairway_controller::Requests;
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_apiserver::pki;
use process::Process;
use receivers::{MailServer, Received, WebServer, python};
use serde_json::{Value, json};
use tools::{fairway, run};
use until::until;

const PLANE: &str = "/api/v1/namespaces/argocd";
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const NOTIFIED: &str = "notified.notifications.argoproj.io";
const LOGIN: (&str, &str) = ("fairway", "mail-pass");

/// A key pair for this machine, and the authority that signed it.
fn certificates(at: &Path) -> [PathBuf; 3] {
    let now = Clock.unix();
    let authority = pki::new_authority(now).unwrap();
    let names = (&[IpAddr::V4(Ipv4Addr::LOCALHOST)], &["localhost"]);
    let signing = pki::Authority::load(&authority).unwrap();
    let pair = signing.serving(names.0, names.1, pki::LEAF_SECONDS, now).unwrap();
    let write = |name: &str, text: &str| {
        let path = at.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    [
        write("mail.crt", &pair.certificate),
        write("mail.key", &pair.key),
        write("authority.crt", &authority.certificate),
    ]
}

async fn create(requests: &Requests, path: &str, kind: &str, name: &str, rest: Value) {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    for (field, value) in rest.as_object().unwrap() {
        object[field] = value.clone();
    }
    assert!(requests.create(path, &object).await.unwrap(), "{path} {name}");
}

/// The configuration of a control plane: what people write.
async fn configure(requests: &Requests, mail: u16, web: u16) {
    create(
        requests,
        &format!("{PLANE}/secrets"),
        "Secret",
        "argocd-notifications-secret",
        json!({"stringData": {
            "mail-password": LOGIN.1, "hook-token": "hook-s3cret", "slack-token": "xoxb-s3cret",
        }}),
    )
    .await;
    let service = |text: String| text;
    create(requests, &format!("{PLANE}/configmaps"), "ConfigMap", "argocd-notifications-cm", json!({"data": {
        "context": "place: the house",
        "service.email": service(format!(
            "host: localhost\nport: {mail}\nfrom: Fairway <fairway@example.com>\nusername: {}\npassword: $mail-password\n", LOGIN.0
        )),
        "service.webhook.ci": service(format!(
            "url: http://127.0.0.1:{web}/hook/\nheaders:\n- name: Authorization\n  value: Bearer $hook-token\n"
        )),
        "service.slack": service(format!("token: $slack-token\napiURL: http://127.0.0.1:{web}/slack\n")),
        "service.telegram": "token: x",
        "trigger.wrong": "- when: app.status ==\n",
        "trigger.on-sync-succeeded": "- when: app.status.operationState != nil and app.status.operationState.phase in ['Succeeded']\n  oncePer: app.status.operationState?.syncResult?.revision\n  send: [synced, commit]\n",
        "trigger.on-sync-failed": "- when: app.status?.operationState.phase in ['Error', 'Failed']\n  oncePer: app.status.operationState?.syncResult?.revision\n  send: [failed]\n",
        "template.synced": "message: '{{.app.metadata.name}} in {{.context.place}} is {{.app.status.sync.status}}'\nemail:\n  subject: '{{.app.metadata.name}} was synced'\nslack:\n  attachments: '[{\"title\": \"{{.app.metadata.name}}\", \"text\": \"{{.app.status.sync.revision}}\"}]'\n",
        "template.commit": "webhook:\n  ci:\n    method: POST\n    path: /synced/{{.app.metadata.name}}\n    body: '{\"revision\": \"{{.app.status.sync.revision}}\", \"why\": {{(call .repo.GetCommitMetadata .app.status.sync.revision).Message | trim | toJson}}}'\n",
        "template.failed": "webhook:\n  ci:\n    method: PUT\n    path: /failed/{{.app.metadata.name}}\n    body: '{{.app.status.operationState.phase}}'\n",
    }}))
    .await;
}

fn annotations() -> Value {
    let prefix = "notifications.argoproj.io/subscribe.";
    let subscriptions = [
        ("on-sync-succeeded.email", "anna@example.com"),
        ("on-sync-succeeded.ci", ""),
        ("on-sync-succeeded.slack", "deployments"),
        ("on-sync-succeeded.telegram", "1234"),
        ("on-sync-failed.ci", ""),
    ];
    let all: BTreeMap<String, &str> = subscriptions
        .iter()
        .map(|(name, value)| (format!("{prefix}{name}"), *value))
        .collect();
    json!(all)
}

async fn record(requests: &Requests, name: &str) -> BTreeMap<String, i64> {
    let application = requests
        .get(&format!("{APPLICATIONS}/{name}"))
        .await
        .unwrap()
        .unwrap();
    let text = application["metadata"]["annotations"][NOTIFIED]
        .as_str()
        .unwrap_or("{}")
        .to_owned();
    serde_json::from_str(&text).unwrap()
}

fn accepted(all: Vec<Received>) -> Vec<Received> {
    all.into_iter().filter(|it| it.is_accepted).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn syncs_are_told_once() {
    let Some(python) = python() else {
        println!("SKIPPED: there is no aiosmtpd; `scripts/tools.sh python` installs it");
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (data, work) = (place.path().join("data"), place.path().join("work"));
    std::fs::create_dir_all(&data).unwrap();
    let [certificate, key, authority] = certificates(place.path());
    let mail = MailServer::start(&python, &certificate, &key, LOGIN);
    let web = WebServer::start().await;
    // The Application names the host with its port, which must be the same after the restart.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let arguments = [
        "--webhook-allowed-hosts",
        "loopback",
        "--web-listen",
        listen.as_str(),
    ];
    let mut process = Process::start_trusting(&data, &arguments, &authority);
    let requests = Requests::new(process.client().await);
    for name in ["argocd", "house"] {
        create(&requests, "/api/v1/namespaces", "Namespace", name, json!({})).await;
    }
    configure(&requests, mail.port, web.port).await;
    let address = fairway(&data, &["repo", "create", "root/lamps", "--with-token"]);
    let plain = format!("https://{}", address.split_once('@').unwrap().1);
    let push = |port: u32, message: &str| {
        format!(
            "printf 'apiVersion: v1\\nkind: Service\\nmetadata: {{name: lamp}}\\nspec: {{ports: [{{port: {port}}}]}}\\n' > lamp.yaml \
             && git add -A && git commit -qm '{message}' && git push -q -o fairway.wait=false {address} main 2>&1 \
             && git rev-parse HEAD"
        )
    };
    let first = run(
        &data,
        &work,
        &format!("git init -q -b main . && {}", push(80, "Light the lamp")),
    );
    let first = first.lines().last().unwrap().to_owned();
    create(
        &requests,
        APPLICATIONS,
        "Application",
        "lamps",
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "metadata": {"name": "lamps", "annotations": annotations()},
            "spec": {
                "project": "default",
                "source": {"repoURL": plain, "path": ".", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "house"},
                "syncPolicy": {"automated": {}, "retry": {"limit": 0}},
            },
        }),
    )
    .await;

    // All three are told; Slack has refused it once, so it was tried again.
    until("the notifications of the first sync", async || {
        let told = !mail.mails().is_empty()
            && !web.received("/hook/").is_empty()
            && !accepted(web.received("/slack/")).is_empty();
        told.then_some(())
    })
    .await;
    let [letter] = &mail.mails()[..] else {
        panic!("{:?}", mail.mails())
    };
    assert_eq!(
        *letter,
        json!({
            "from": "fairway@example.com", "to": ["anna@example.com"], "subject": "lamps was synced", "type": "text/plain",
            "body": "lamps in the house is Synced\r\n", "encrypted": true, "authenticated": true,
        })
    );
    let [hook] = &web.received("/hook/")[..] else {
        panic!("{:?}", web.received("/hook/"))
    };
    assert_eq!(
        (hook.method.as_str(), hook.path.as_str()),
        ("POST", "/hook/synced/lamps")
    );
    assert_eq!(hook.authorization, "Bearer hook-s3cret");
    let body: Value = serde_json::from_str(&hook.body).unwrap();
    assert_eq!(body, json!({"revision": first, "why": "Light the lamp"}));
    let [post] = &accepted(web.received("/slack/"))[..] else {
        panic!("{:?}", web.received("/slack/"))
    };
    assert_eq!(
        (post.path.as_str(), post.authorization.as_str()),
        ("/slack/chat.postMessage", "Bearer xoxb-s3cret")
    );
    assert!(
        post.body.contains("channel=deployments") && post.body.contains("lamps+in+the+house"),
        "{}",
        post.body
    );
    let told = until("the record", async || {
        let record = record(&requests, "lamps").await;
        (record.len() == 3).then_some(record)
    })
    .await;
    assert!(
        told.keys()
            .all(|key| key.starts_with(&format!("{first}:on-sync-succeeded:[0]."))),
        "{told:?}"
    );
    // What could not be sent can be seen, and shows no secret.
    let events = until("the events", async || {
        let events = requests.list(&format!("{PLANE}/events")).await.unwrap();
        let failed = events
            .iter()
            .filter(|event| event["reason"] == "NotificationFailed");
        let messages: Vec<String> = failed.map(|event| event["message"].to_string()).collect();
        let all = messages.join("\n");
        (all.contains("ratelimited") && all.contains("telegram are not served")).then_some(all)
    })
    .await;
    assert!(!events.contains("s3cret"), "{events}");
    until("the event of the ConfigMap", async || {
        let events = requests.list(&format!("{PLANE}/events")).await.unwrap();
        let found = events.iter().find(|event| event["reason"] == "InvalidEntry")?;
        found["message"]
            .as_str()?
            .starts_with("trigger.wrong: condition 0: when")
            .then_some(())
    })
    .await;

    // A process that starts anew tells nothing again. What it tells first is what happens next: a sync that fails.
    process.kill();
    drop(process);
    let process = Process::start_trusting(&data, &arguments, &authority);
    let requests = Requests::new(process.client().await);
    run(&data, &work, &push(99_999, "Break the lamp"));
    until("the failure", async || {
        (web.received("/hook/").len() > 1).then_some(())
    })
    .await;
    let [_, hook] = &web.received("/hook/")[..] else {
        panic!("{:?}", web.received("/hook/"))
    };
    assert_eq!(
        (hook.method.as_str(), hook.path.as_str(), hook.body.as_str()),
        ("PUT", "/hook/failed/lamps", "Failed")
    );
    // And then a sync that succeeds, after which all that was ever told is known.
    run(&data, &work, &push(81, "Mend the lamp"));
    until("the notifications of the last sync", async || {
        let is_recorded = record(&requests, "lamps").await.len() == 7;
        is_recorded.then_some(())
    })
    .await;
    assert_eq!(
        (
            mail.mails().len(),
            web.received("/hook/").len(),
            accepted(web.received("/slack/")).len()
        ),
        (2, 3, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_have_configurations_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let web = WebServer::start().await;
    let process = Process::start_with(&data, &["--webhook-allowed-hosts", "loopback"]);
    fairway(&data, &["workspace", "create", "acme"]);
    let requests = Requests::new(process.client().await);
    let application = |name: &str, health: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            // The test plays the engine.
            "metadata": {"name": name, "annotations": {
                "argocd.argoproj.io/skip-reconcile": "true", "notifications.argoproj.io/subscribe.degraded.ci": "",
            }},
            "spec": {
                "project": "shop",
                "source": {"repoURL": "https://git.test/shop", "path": "web"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            },
            "status": {"health": {"status": health}},
        })
    };
    let workspaces = [("root", "/clusters/root"), ("acme", "/clusters/root:acme")];
    for (name, at) in workspaces {
        let namespaces = format!("{at}/api/v1/namespaces");
        create(&requests, &namespaces, "Namespace", "argocd", json!({})).await;
        let applications = format!("{at}{APPLICATIONS}");
        create(
            &requests,
            &applications,
            "Application",
            "web",
            application("web", "Degraded"),
        )
        .await;
        create(
            &requests,
            &format!("{at}{PLANE}/configmaps"),
            "ConfigMap",
            "argocd-notifications-cm",
            json!({"data": {
                "service.webhook.ci": format!("url: http://127.0.0.1:{}/{name}", web.port),
                "trigger.degraded": "- when: app.status.health.status == 'Degraded'\n  send: [t]",
                "template.t": "message: '{{.app.metadata.name}} {{.appProject.spec.description}}'",
                "trigger.healthy": "- when: app.status.health.status == 'Healthy'\n  send: [t]",
            }}),
        )
        .await;
    }
    // A configuration that comes later than an Application is heard of, too.
    for name in ["/root", "/acme"] {
        until("the first", async || {
            (!web.received(name).is_empty()).then_some(())
        })
        .await;
    }
    // A project subscribes for all its Applications.
    let projects = "/clusters/root:acme/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
    create(&requests, projects, "AppProject", "shop", json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "metadata": {"name": "shop", "annotations": {"notifications.argoproj.io/subscribe.healthy.ci": "team"}},
        "spec": {"description": "the shop"},
    }))
    .await;
    let healthy = json!({"status": {"health": {"status": "Healthy"}}});
    for (_, at) in workspaces {
        requests
            .merge(&format!("{at}{APPLICATIONS}/web"), &healthy)
            .await
            .unwrap();
    }
    until("the project's subscription", async || {
        (web.received("/acme").len() > 1).then_some(())
    })
    .await;
    // Each was told what is its own, and nothing twice.
    let again = json!({"status": {"health": {"status": "Degraded"}}});
    for (_, at) in workspaces {
        requests
            .merge(&format!("{at}{APPLICATIONS}/web"), &again)
            .await
            .unwrap();
    }
    for (name, count) in [("/root", 2), ("/acme", 3)] {
        until("the last", async || {
            (web.received(name).len() >= count).then_some(())
        })
        .await;
    }
    let said = |name: &str| -> Vec<String> {
        web.received(name)
            .into_iter()
            .map(|it| format!("{} {} {}", it.method, it.path, it.body))
            .collect()
    };
    assert_eq!(
        said("/root"),
        ["GET /root web <no value>", "GET /root web <no value>"]
    );
    assert_eq!(
        said("/acme"),
        [
            "GET /acme web <no value>",
            "GET /acme web the shop",
            "GET /acme web the shop"
        ]
    );
}
