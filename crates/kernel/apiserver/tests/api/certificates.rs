//! Requests for certificates: who asked is written by the server, and who may judge and sign is decided per signer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_apiserver::pki;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::harness::{Client, Server};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn pem(user: &str, group: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

fn request(name: &str, signer: &str, pem: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": ["client auth"]},
    })
}

/// Gives a user these rules.
async fn allow(admin: &Client, user: &str, rules: &Value) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": user}, "rules": rules});
    admin
        .post(&format!("{rbac}/clusterroles"), &role)
        .await
        .expect(201);
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    admin
        .post(&format!("{rbac}/clusterrolebindings"), &binding)
        .await
        .expect(201);
}

fn on(verbs: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({"apiGroups": ["certificates.k8s.io"], "verbs": verbs, "resources": resources, "resourceNames": names})
}

fn verdict(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Test", "message": "m"}]}})
}

#[tokio::test]
async fn the_server_writes_who_asked() {
    let server = Server::start().await;
    let admin = server.admin();
    allow(
        &admin,
        "anna",
        &json!([on(&["create"], &["certificatesigningrequests"], &[])]),
    )
    .await;
    let mut body = request("mine", "example.com/own", &pem("anna", "developers"));
    body["spec"]["username"] = json!("somebody-else");
    body["spec"]["groups"] = json!(["system:masters"]);
    body["status"] = verdict("Approved")["status"].clone();
    let anna = server.user("anna", &["pilots"]);
    let made = anna.post(REQUESTS, &body).await.expect(201);
    assert_eq!(made["spec"]["username"], "anna");
    assert_eq!(made["spec"]["groups"], json!(["pilots", "system:authenticated"]));
    assert_eq!(
        made["status"],
        json!({}),
        "nobody approves his own request by creating it"
    );
}

#[tokio::test]
async fn nobody_asks_for_the_all_powerful_group() {
    let server = Server::start().await;
    let admin = server.admin();
    let all_powerful = pem("root", "system:masters");
    let refused = admin
        .post(REQUESTS, &request("r", CLIENT_SIGNER, &all_powerful))
        .await
        .expect(403);
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    // Another signer is not ours to restrict.
    admin
        .post(REQUESTS, &request("r", "example.com/own", &all_powerful))
        .await
        .expect(201);
}

#[tokio::test]
async fn hostile_requests_are_refused_at_once() {
    let server = Server::start().await;
    let admin = server.admin();
    let good = pem("anna", "developers");
    for (name, text) in [
        ("nothing", String::new()),
        ("text", "hello".to_owned()),
        (
            "a certificate",
            good.replace("CERTIFICATE REQUEST", "CERTIFICATE"),
        ),
        ("half", good[..good.len() / 2].to_owned()),
        ("long", "A".repeat(1_000_000)),
        (
            "deep",
            fairway_kernel_x509::encode("CERTIFICATE REQUEST", &[0x30, 0x80].repeat(30_000)),
        ),
    ] {
        let refused = admin
            .post(REQUESTS, &request("r", "example.com/own", &text))
            .await
            .expect(422);
        let cause = &refused["details"]["causes"][0];
        assert_eq!(cause["field"], "spec.request", "{name}");
    }
}

#[tokio::test]
async fn approval_needs_a_right_on_the_signer() {
    let server = Server::start().await;
    let admin = server.admin();
    let doors = || {
        on(
            &["get", "update", "patch"],
            &["certificatesigningrequests/approval"],
            &[],
        )
    };
    allow(&admin, "doorman", &json!([doors()])).await;
    allow(
        &admin,
        "one",
        &json!([doors(), on(&["approve"], &["signers"], &["example.com/own"])]),
    )
    .await;
    allow(
        &admin,
        "domain",
        &json!([doors(), on(&["approve"], &["signers"], &["example.com/*"])]),
    )
    .await;
    allow(
        &admin,
        "other",
        &json!([doors(), on(&["approve"], &["signers"], &["example.org/*"])]),
    )
    .await;
    for (user, want) in [("doorman", 403), ("other", 403), ("one", 200), ("domain", 200)] {
        let text = pem("anna", "developers");
        admin
            .post(REQUESTS, &request(user, "example.com/own", &text))
            .await
            .expect(201);
        let client = server.user(user, &[]);
        let path = format!("{REQUESTS}/{user}/approval");
        // The signer that is stored counts, not one that the client would rather be asked about.
        let mut change = verdict("Approved");
        change["spec"] = json!({"signerName": "example.org/own"});
        let answer = client.patch("merge", &path, &change).await.expect(want);
        if want == 403 {
            assert_eq!(
                answer["message"],
                format!(
                    "certificatesigningrequests.certificates.k8s.io \"{user}\" is forbidden: user not permitted to \
                     approve requests with signerName \"example.com/own\""
                )
            );
        } else {
            assert_eq!(answer["spec"]["signerName"], "example.com/own");
            assert_eq!(answer["status"]["conditions"][0]["type"], "Approved");
            // What was approved is not denied afterwards.
            client.patch("merge", &path, &verdict("Denied")).await.expect(422);
        }
    }
}

#[tokio::test]
async fn signing_needs_a_right_on_the_signer() {
    let server = Server::start().await;
    let admin = server.admin();
    let doors = || {
        on(
            &["get", "update", "patch"],
            &["certificatesigningrequests/status"],
            &[],
        )
    };
    allow(&admin, "doorman", &json!([doors()])).await;
    allow(
        &admin,
        "signer",
        &json!([doors(), on(&["sign"], &["signers"], &["example.com/own"])]),
    )
    .await;
    let text = pem("anna", "developers");
    admin
        .post(REQUESTS, &request("r", "example.com/own", &text))
        .await
        .expect(201);
    admin
        .patch("merge", &format!("{REQUESTS}/r/approval"), &verdict("Approved"))
        .await
        .expect(200);
    let certificate = STANDARD.encode(pki::new_authority(1_700_000_000).unwrap().certificate);
    let issue = json!({"status": {"certificate": certificate}});
    let path = format!("{REQUESTS}/r/status");
    let refused = server
        .user("doorman", &[])
        .patch("merge", &path, &issue)
        .await
        .expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("user not permitted to sign requests with signerName \"example.com/own\""),
        "{message}"
    );
    // What changes nothing needs no right.
    let nothing = json!({"metadata": {"labels": {"a": "b"}}});
    server
        .user("doorman", &[])
        .patch("merge", &path, &nothing)
        .await
        .expect(200);
    let signer = server.user("signer", &[]);
    let issued = signer.patch("merge", &path, &issue).await.expect(200);
    assert_eq!(issued["status"]["certificate"], certificate);
    let other =
        json!({"status": {"certificate": STANDARD.encode("-----BEGIN X-----\nAQ==\n-----END X-----\n")}});
    signer.patch("merge", &path, &other).await.expect(422);
}

#[tokio::test]
async fn a_signed_certificate_keeps_every_organisation() {
    use fairway_kernel_apiserver::authn::x509;
    use fairway_kernel_x509::Certificate;
    let now = 1_800_000_000;
    let authority = pki::Authority::load(&pki::new_authority(now).unwrap()).unwrap();
    let groups = ["developers", "pilots", "developers", "Köln"];
    let pair = authority.client("anna", &groups, 3_600, now).unwrap();
    let read = Certificate::first_from_pem(&pair.certificate).unwrap();
    let user = x509::user(&read.der).unwrap();
    assert_eq!(user.name, "anna");
    assert_eq!(user.groups, groups);
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("X509SHA256="));
    assert_eq!(x509::end(&read.der), Some(now + 3_600));
    // An authority whose key is another's does not sign at all.
    let other = pki::new_authority(now).unwrap();
    let mixed = pki::Pair {
        certificate: pki::new_authority(now).unwrap().certificate,
        key: other.key,
    };
    assert!(pki::Authority::load(&mixed).is_err());
    // What is over signs nothing.
    assert!(
        authority
            .client("anna", &[], 3_600, now + 20 * 31_536_000)
            .is_err()
    );
}
