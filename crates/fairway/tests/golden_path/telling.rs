//! What runs tell others: messages to addresses that are secret.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::until::until;
use crate::world::{VOYAGES, World, phase, template, voyage, voyage_when};

/// Takes one request on loopback and answers it well; what was asked.
fn taker() -> (u16, std::thread::JoinHandle<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        let mut text = String::new();
        let mut buffer = [0_u8; 4096];
        while !text.contains("\"voyage\"") {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
                _ => break,
            }
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        text
    });
    (port, taken)
}

/// The address of a webhook comes from a secret: it is called, and stands nowhere in the Voyage.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_address_is_told_and_not_shown() {
    let world = World::start();
    let api = world.api().await;
    let (port, taken) = taker();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": "default"},
        "stringData": {"hook": "T0SECRET/B0SECRET"},
    });
    api.create("/api/v1/namespaces/default/secrets", &secret)
        .await
        .unwrap();
    let tell = json!([
        {"id": "tell", "action": "notification:send", "input": {
            "title": "done", "webhook": format!("http://127.0.0.1:{port}/services/${{{{ secrets.hook }}}}")}},
        {"id": "many", "action": "notification:send", "each": ["a", "b"], "input": {
            "title": "for ${{ each.value }}", "email": "${{ each.value }}@example.com"}},
    ]);
    template(&api, "telling", tell).await;
    let spec = json!({"template": "telling", "secretRef": {"name": "hook"}});
    voyage(&api, "tells", spec).await;
    let told = voyage_when(&api, "tells", "the webhook was called", |voyage| {
        voyage["status"]["notices"][0]["state"] == "sent"
    })
    .await;
    let heard = taken.join().unwrap();
    assert!(heard.starts_with("POST /services/T0SECRET/B0SECRET "), "{heard}");
    assert!(!told.to_string().contains("SECRET"), "{told:#}");
    assert_eq!(
        told["status"]["notices"][0]["to"],
        format!("http://127.0.0.1:{port}/services/***")
    );
    let told = voyage_when(&api, "tells", "it is over", |voyage| phase(voyage) == "Succeeded").await;
    let mails: Vec<String> = told["status"]["notices"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|notice| notice["kind"] == "mail")
        .map(|notice| notice["to"][0].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        mails,
        ["a@example.com", "b@example.com"],
        "each repetition is told"
    );
    assert!(api.get(&format!("{VOYAGES}/tells")).await.unwrap().is_some());
}

/// People of the realm are known to runs: who started one, and whom it tells, alone or as a group.
#[tokio::test(flavor = "multi_thread")]
async fn people_are_found_in_the_catalog() {
    let world = World::start();
    let api = world.api().await;
    let fairway = "/apis/fairway.dev/v1alpha1";
    for name in ["ann", "bob"] {
        let user = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "User", "metadata": {"name": name},
            "spec": {"displayName": name.to_uppercase(), "email": format!("{name}@example.com")},
        });
        api.create(&format!("{fairway}/users"), &user).await.unwrap();
    }
    let group = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Group", "metadata": {"name": "team"}, "spec": {"members": ["ann", "bob"]},
    });
    api.create(&format!("{fairway}/groups"), &group).await.unwrap();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)
        .await
        .unwrap();
    let tell = json!([
        {"id": "who", "action": "debug:log", "input": {"message": "from ${{ user.entity.spec.profile.email }}"}},
        {"id": "tell", "action": "notification:send", "input": {
            "title": "done", "recipients": "entity", "entityRefs": ["group:default/team", "user:default/ann", "user:default/nobody"]}},
    ]);
    template(&api, "people", tell).await;
    // The catalog follows the realm by itself, a moment later.
    let mut turn = 0;
    let told = until("the run finds them", async || {
        turn += 1;
        let name = format!("people-{turn}");
        let object = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Voyage", "metadata": {"name": name, "namespace": "default"},
            "spec": {"template": "people"},
        });
        world.ask_as("ann", "POST", VOYAGES, &object).await.unwrap();
        let told = voyage_when(&api, &name, "it is over", |voyage| {
            matches!(phase(voyage), "Succeeded" | "Failed")
        })
        .await;
        let notice = told["status"]["notices"][0]["to"].as_array().map_or(0, Vec::len);
        (notice == 2 || turn == 20).then_some(told)
    })
    .await;
    let mut to: Vec<&str> = told["status"]["notices"][0]["to"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    to.sort_unstable();
    assert_eq!(to, ["ann@example.com", "bob@example.com"], "{told:#}");
    let steps = &told["status"]["steps"];
    assert_eq!(steps[0]["log"][0]["text"], "from ann@example.com", "{told:#}");
    assert!(
        steps[1]["log"]
            .to_string()
            .contains("user:default/nobody is not in the catalog"),
        "{told:#}"
    );
}
