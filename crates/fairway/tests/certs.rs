//! The whole program while its certificates change: clients that hold connections must not notice, new ones must get the new
//! certificates, and what a request for a certificate brings must let its owner in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[path = "certs/server.rs"]
mod server;

use std::time::Duration;

use fairway_kernel_x509::Certificate;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use server::{Server, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_lived_certificates_rotate_while_clients_hold_connections() {
    // Due after 21 to 27 seconds.
    let server = Server::start(&["--cert-duration", "30s"]);
    let held = server.client().await;
    let watched: Api<Namespace> = Api::all(held.clone());
    let first = server.certificate("serving");
    let first_admin = server.certificate("admin");
    let served = server.served().await;
    assert_eq!(served[0], first.der, "what is on disk is what is served");
    let requests = std::sync::atomic::AtomicU64::new(0);
    eventually(
        Duration::from_secs(90),
        "serving and admin certificates are renewed",
        || async {
            // The held connection answers all the time.
            watched.list(&ListParams::default()).await.unwrap();
            requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            server.certificate("serving").serial != first.serial
                && server.certificate("admin").serial != first_admin.serial
        },
    )
    .await;
    let requests = requests.into_inner();
    assert!(
        requests > 10,
        "only {requests} requests while the certificates changed"
    );
    let second = server.certificate("serving");
    eventually(
        Duration::from_secs(20),
        "the new certificate is served",
        || async { server.served().await[0] == second.der },
    )
    .await;
    // The kubeconfig has the new certificate, and works.
    eventually(Duration::from_secs(20), "the kubeconfig is renewed", || async {
        server.kubeconfig_certificate() == server.certificate("admin").der
    })
    .await;
    let fresh: Api<Namespace> = Api::all(server.client().await);
    fresh.list(&ListParams::default()).await.unwrap();
    assert_eq!(second.names, first.names);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_is_replaced_under_clients_that_trust_the_old_one() {
    let server = Server::start(&[]);
    let before = server.config().await;
    let config_maps: Api<ConfigMap> =
        Api::namespaced(kube::Client::try_from(before.clone()).unwrap(), "default");
    config_maps.list(&ListParams::default()).await.unwrap();
    let first = server.served().await[0].clone();

    server.certs(&["rotate-ca"]);
    eventually(Duration::from_secs(20), "the new authority serves", || async {
        server.served().await[0] != first
    })
    .await;
    // Connections that were open, new ones that trust and show only the old, and new ones with the new kubeconfig.
    config_maps.list(&ListParams::default()).await.unwrap();
    let old: Api<Namespace> = Api::all(kube::Client::try_from(before.clone()).unwrap());
    old.list(&ListParams::default()).await.unwrap();
    let new: Api<Namespace> = Api::all(server.client().await);
    new.list(&ListParams::default()).await.unwrap();
    let bundle = std::fs::read_to_string(server.path("pki/ca.crt")).unwrap();
    assert_eq!(Certificate::all_from_pem(&bundle).unwrap().len(), 2);
    eventually(
        Duration::from_secs(20),
        "workloads get both authorities",
        || async {
            let published = config_maps.get("kube-root-ca.crt").await.unwrap();
            published.data.unwrap()["ca.crt"] == bundle
        },
    )
    .await;

    server.certs(&["forget-old-ca"]);
    eventually(
        Duration::from_secs(20),
        "the old administrator is let in no more",
        || async {
            let old: Api<Namespace> = Api::all(kube::Client::try_from(before.clone()).unwrap());
            old.list(&ListParams::default()).await.is_err()
        },
    )
    .await;
    let new: Api<Namespace> = Api::all(server.client().await);
    new.list(&ListParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_request_lets_its_owner_in() {
    let server = Server::start(&[]);
    let requests: Api<CertificateSigningRequest> = Api::all(server.client().await);
    // Made by openssl, because the library at hand writes one organisation only.
    let (key, request) = server.openssl_request("/O=developers/O=pilots/CN=anna");
    let body: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": {"name": "anna"},
        "spec": {
            "request": k8s_openapi::ByteString(request.into_bytes()), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 3600,
        },
    }))
    .unwrap();
    requests.create(&PostParams::default(), &body).await.unwrap();
    let verdict =
        json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}});
    requests
        .patch_subresource(
            "approval",
            "anna",
            &PatchParams::default(),
            &Patch::Merge(verdict),
        )
        .await
        .unwrap();
    eventually(Duration::from_secs(20), "it is signed", || {
        let requests = requests.clone();
        async move {
            requests
                .get("anna")
                .await
                .unwrap()
                .status
                .unwrap()
                .certificate
                .is_some()
        }
    })
    .await;
    let bytes = requests
        .get("anna")
        .await
        .unwrap()
        .status
        .unwrap()
        .certificate
        .unwrap()
        .0;
    let issued = String::from_utf8(bytes).unwrap();
    let certificate = Certificate::first_from_pem(&issued).unwrap();
    assert_eq!(certificate.subject.organisations, ["developers", "pilots"]);
    assert_eq!(certificate.life.end - certificate.life.start, 3_900);

    let who = server.who_am_i(&issued, &key).await;
    assert_eq!(who["username"], "anna");
    assert_eq!(
        who["groups"],
        json!(["developers", "pilots", "system:authenticated"])
    );
    let credential = who["extra"]["authentication.kubernetes.io/credential-id"][0]
        .as_str()
        .unwrap();
    assert!(credential.starts_with("X509SHA256="), "{credential}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_certificates_are_followed_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let paths = (folder.path().join("a.crt"), folder.path().join("a.key"));
    let authority = fairway_kernel_apiserver::pki::new_authority(server::now()).unwrap();
    let authority = fairway_kernel_apiserver::pki::Authority::load(&authority).unwrap();
    let give = || {
        let pair = authority
            .serving(
                &["127.0.0.1".parse().unwrap()],
                &["localhost"],
                86_400,
                server::now(),
            )
            .unwrap();
        std::fs::write(&paths.1, &pair.key).unwrap();
        std::fs::write(&paths.0, &pair.certificate).unwrap();
        pair.certificate
    };
    let first = give();
    let server = Server::start(&[
        "--tls-cert",
        paths.0.to_str().unwrap(),
        "--tls-key",
        paths.1.to_str().unwrap(),
    ]);
    assert_eq!(
        server.served().await[0],
        Certificate::first_from_pem(&first).unwrap().der
    );
    server.certs(&["renew", "admin"]);
    // Nonsense in between changes nothing.
    std::fs::write(&paths.0, "nonsense").unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        server.served().await[0],
        Certificate::first_from_pem(&first).unwrap().der
    );
    let second = give();
    eventually(Duration::from_secs(20), "the second is served", || async {
        server.served().await[0] == Certificate::first_from_pem(&second).unwrap().der
    })
    .await;
    assert_eq!(std::fs::read_to_string(&paths.0).unwrap(), second);
}

#[test]
fn certificates_are_shown_and_renewed_while_stopped() {
    let mut server = Server::start(&[]);
    let shown: serde_json::Value = serde_json::from_str(&server.certs(&["list", "-o", "json"])).unwrap();
    let names: Vec<&str> = shown["certificates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ca", "serving", "admin"]);
    assert_eq!(
        shown["certificates"][2]["subject"],
        "O=system:masters, CN=fairway-admin"
    );
    let table = server.certs(&["list"]);
    assert!(
        table.starts_with("NAME") && table.contains("kubernetes.default.svc"),
        "{table}"
    );
    server.stop();
    let before = server.certificate("serving");
    let told = server.certs(&["renew", "--all"]);
    assert!(told.contains("The next `fairway up` uses it"), "{told}");
    assert_ne!(server.certificate("serving").serial, before.serial);
    assert_eq!(server.certificate("serving").names, before.names);
    let refused = server.certs_refused(&["renew", "ca"]);
    assert!(refused.contains("rotate-ca"), "{refused}");
    let refused = server.certs_refused(&["renew"]);
    assert!(refused.contains("--all"), "{refused}");
    for name in [
        "pki/ca.key",
        "pki/serving.key",
        "pki/admin.key",
        "pki/serving.crt",
        "kubeconfig",
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(server.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
