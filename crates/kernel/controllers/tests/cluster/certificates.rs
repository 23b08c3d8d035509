//! Requests for certificates, from the request to the signed certificate.

use kube::api::{Patch, PatchParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, a_while, create, eventually};

fn pem(user: &str, group: &str) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params
        .serialize_request(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
        .unwrap()
}

fn request(name: &str, signer: &str, pem: &str, usages: &[&str]) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"request": k8s_openapi::ByteString(pem.as_bytes().to_vec()), "signerName": signer, "usages": usages},
    })
}

async fn approve(cluster: &View, name: &str, kind: &str) {
    let verdict = json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}});
    cluster
        .requests()
        .patch_subresource("approval", name, &PatchParams::default(), &Patch::Merge(verdict))
        .await
        .unwrap();
}

async fn status(cluster: &View, name: &str) -> Value {
    cluster.requests().get(name).await.unwrap().data["status"].clone()
}

#[tokio::test]
async fn what_is_approved_is_signed_and_what_does_not_fit_fails() {
    let cluster = Cluster::start().await;
    let api = cluster.requests();
    let signer = "kubernetes.io/kube-apiserver-client";
    let anna = pem("anna", "developers");
    create(&api, request("good", signer, &anna, &["client auth"])).await;
    create(&api, request("server", signer, &anna, &["server auth"])).await;
    create(&api, request("denied", signer, &anna, &["client auth"])).await;
    create(
        &api,
        request("theirs", "example.com/own", &anna, &["client auth"]),
    )
    .await;
    a_while().await;
    assert_eq!(
        status(&cluster, "good").await,
        json!({}),
        "nothing is signed before it is approved"
    );
    for (name, verdict) in [
        ("good", "Approved"),
        ("server", "Approved"),
        ("denied", "Denied"),
        ("theirs", "Approved"),
    ] {
        approve(&cluster, name, verdict).await;
    }
    eventually("the certificate comes", || async {
        status(&cluster, "good").await["certificate"].is_string()
    })
    .await;
    eventually("what does not fit fails", || async {
        let status = status(&cluster, "server").await;
        status["conditions"][1]["reason"] == "SignerValidationFailure"
            && status["conditions"][1]["message"] == "invalid usage for client certificate: server auth"
    })
    .await;
    a_while().await;
    for name in ["server", "denied", "theirs"] {
        assert!(status(&cluster, name).await["certificate"].is_null(), "{name}");
    }
    let jobs = cluster.signer.jobs.lock().unwrap().clone();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].request.subject.common_name, "anna");
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_gets_its_certificate_if_it_may_have_one() {
    let cluster = Cluster::start().await;
    let api = cluster.requests();
    let node = pem("system:node:n1", "system:nodes");
    let body = |name: &str| {
        request(
            name,
            "kubernetes.io/kube-apiserver-client-kubelet",
            &node,
            &["digital signature", "client auth"],
        )
    };
    // The administrator may do everything, so this too.
    create(&api, body("by-admin")).await;
    // The token by which the other one comes.
    let tokens = cluster.api("v1", "Secret", "secrets", "kube-system");
    let token =
        json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token"});
    create(&tokens, token).await;
    // The group has the right to ask, and not the right to have it approved.
    let stranger = cluster.as_user(
        "system:bootstrap:abcdef",
        &["system:bootstrappers", "system:authenticated"],
    );
    let rbac = "rbac.authorization.k8s.io";
    let binding = |name: &str, role: &str| {
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "system:bootstrappers"}],
        })
    };
    let bindings = cluster.api(
        &format!("{rbac}/v1"),
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
    );
    create(&bindings, binding("ask", "system:node-bootstrapper")).await;
    create(&stranger, body("by-stranger")).await;
    eventually("the node's certificate", || async {
        let status = status(&cluster, "by-admin").await;
        status["conditions"][0]["reason"] == "AutoApproved" && status["certificate"].is_string()
    })
    .await;
    a_while().await;
    assert_eq!(status(&cluster, "by-stranger").await, json!({}));
    let role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    create(&bindings, binding("have", role)).await;
    create(&stranger, body("again")).await;
    eventually("the bootstrapped node's certificate", || async {
        let status = status(&cluster, "again").await;
        status["conditions"][0]["message"]
            == "Auto approving kubelet client certificate after SubjectAccessReview."
            && status["certificate"].is_string()
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn an_authority_that_cannot_sign_is_asked_again() {
    let cluster = Cluster::start().await;
    *cluster.signer.broken.lock().unwrap() = true;
    let api = cluster.requests();
    let anna = pem("anna", "developers");
    create(
        &api,
        request(
            "r",
            "kubernetes.io/kube-apiserver-client",
            &anna,
            &["client auth"],
        ),
    )
    .await;
    approve(&cluster, "r", "Approved").await;
    eventually("it is tried", || async {
        cluster.signer.jobs.lock().unwrap().len() > 1
    })
    .await;
    *cluster.signer.broken.lock().unwrap() = false;
    eventually("it is signed in the end", || async {
        status(&cluster, "r").await["certificate"].is_string()
    })
    .await;
}

#[tokio::test]
async fn root_certificates_follow_the_authority() {
    let cluster = Cluster::start().await;
    let has = async |want: &str| {
        let found = cluster
            .config_maps("default")
            .get_opt("kube-root-ca.crt")
            .await
            .unwrap();
        found.is_some_and(|c| c.data["data"]["ca.crt"] == want)
    };
    eventually("the first", || has(crate::harness::ROOT_CA)).await;
    cluster.root_ca.send_replace("another".into());
    eventually("the second", || has("another")).await;
    cluster.stop().await;
}

#[tokio::test]
async fn other_workspaces_than_the_root_are_told_that_nothing_is_signed() {
    let cluster = Cluster::start().await;
    let team = cluster.workspace("2a8f0a9b1c3d4e5f").await;
    let signer = "kubernetes.io/kube-apiserver-client";
    let wanted = request("r", signer, &pem("anna", "developers"), &["client auth"]);
    create(&team.requests(), wanted).await;
    approve(&team, "r", "Approved").await;
    eventually("the request fails", || async {
        let conditions = status(&team, "r").await["conditions"].clone();
        let mut conditions = conditions.as_array().unwrap().iter();
        let failed = conditions.find(|condition| condition["type"] == "Failed");
        failed.is_some_and(|c| c["message"].as_str().unwrap().contains("root workspace only"))
    })
    .await;
    assert!(cluster.signer.jobs.lock().unwrap().is_empty());
    cluster.stop().await;
}
