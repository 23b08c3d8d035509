//! Files that are sent, as virtctl sends them.

use fairway_apiservice::{Body, full};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::harness::{World, claim_path, condition, eventually, everywhere, qemu_io};

const TOKENS: &str = "/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/shop/uploadtokenrequests";

impl World {
    /// Asks for a token as virtctl does.
    pub(crate) async fn token(&self, claim: &str) -> Result<String, String> {
        let asked = json!({
            "apiVersion": "upload.cdi.kubevirt.io/v1beta1", "kind": "UploadTokenRequest",
            "metadata": {"name": "token-for-virtctl", "namespace": "shop"}, "spec": {"pvcName": claim},
        });
        let request = Request::post(TOKENS)
            .header("content-type", "application/json")
            .body(asked.to_string().into_bytes())
            .unwrap();
        let answer: Result<Value, kube::Error> = self.client().request(request).await;
        match answer {
            Ok(object) => Ok(object["status"]["token"].as_str().unwrap().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) async fn send(&self, method: Method, token: &str, body: Body) -> (StatusCode, String) {
        let request = Request::builder()
            .method(method)
            .uri("/v1beta1/upload-async")
            .header("authorization", format!("Bearer {token}"))
            .body(body)
            .unwrap();
        let response = self.uploads.serve(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_sent_into_a_volume() {
    everywhere(|world: World| async move {
        world
            .data_volume("disk", json!({"upload": {}}), "8Mi", json!({}))
            .await;
        let ready = world.phase("disk", "UploadReady").await;
        assert_eq!(condition(&ready, "Running").0, "True");
        let config = world.get("/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config").await;
        assert_eq!(config["status"]["uploadProxyURL"], "https://uploads.example.com");
        world
            .until(&claim_path("disk"), "ready", |it| {
                it["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.ready"] == "true"
            })
            .await;
        let token = world.token("disk").await.unwrap();
        assert_eq!(world.send(Method::HEAD, &token, full("")).await.0, StatusCode::OK);
        // What is no disk is refused, and leaves nothing.
        let (status, why) = world.send(Method::POST, &token, full("<html></html>")).await;
        assert!(
            status == StatusCode::BAD_REQUEST && why.contains("web page"),
            "{status} {why}"
        );
        let (status, why) = world.send(Method::POST, &token, full(vec![1; 9 << 20])).await;
        assert!(
            status == StatusCode::BAD_REQUEST && why.contains("larger"),
            "{status} {why}"
        );
        let broken = http_body_util::StreamBody::new(futures::stream::iter([
            Ok(http_body::Frame::data(bytes::Bytes::from(vec![7; 1 << 20]))),
            Err("the connection broke off".into()),
        ]));
        let (status, _) = world.send(Method::POST, &token, broken.boxed_unsync()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(world.get_claim("disk").await["status"]["phase"], "Pending");
        let left = |part: &str| std::fs::read_dir(world.images().join(part)).unwrap().count();
        assert_eq!((left("stage"), left("kept"), left("blobs")), (0, 0, 0));
        // A disk is taken.
        let (status, why) = world.send(Method::POST, &token, full(vec![7; 4 << 20])).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let done = world.phase("disk", "Succeeded").await;
        assert_eq!(condition(&done, "Running").2, "Upload Complete");
        qemu_io(&world.directory_of("disk").await, "read -P 7 0 4M");
        world
            .until(&claim_path("disk"), "processed", |it| {
                it["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.phase"] == "Succeeded"
            })
            .await;
        assert_eq!((left("kept"), left("blobs")), (0, 0), "only the volume has it");
        // Once.
        let (status, why) = world.send(Method::POST, &token, full(vec![9; 4 << 20])).await;
        assert_eq!(status, StatusCode::CONFLICT, "{why}");
        qemu_io(&world.directory_of("disk").await, "read -P 7 0 4M");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_may_wait_for_a_file_itself() {
    everywhere(|world: World| async move {
        let waits = json!({"metadata": {"annotations": {"cdi.kubevirt.io/storage.upload.target": ""}}});
        world.claim("disk", "8Mi", waits).await;
        world
            .until(&claim_path("disk"), "ready", |it| {
                it["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.ready"] == "true"
            })
            .await;
        let token = world.token("disk").await.unwrap();
        let (status, why) = world.send(Method::POST, &token, full(vec![7; 4 << 20])).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        world.bound("disk").await;
        qemu_io(&world.directory_of("disk").await, "read -P 7 0 4M");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_for_one_claim() {
    let world = World::start(crate::harness::At::Workspace).await;
    assert!(world.token("none").await.unwrap_err().contains("not found"));
    for wrong in ["", "x", "a.b"] {
        let (status, _) = world.send(Method::POST, wrong, full("x")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong}");
    }
    world
        .data_volume("disk", json!({"upload": {}}), "8Mi", json!({}))
        .await;
    world.phase("disk", "UploadReady").await;
    let token = world.token("disk").await.unwrap();
    // Another claim of the name is another claim.
    world
        .api
        .delete(&crate::harness::data_volume_path("disk"))
        .await
        .unwrap();
    eventually("it goes", || async { world.get_claim("disk").await.is_null() }).await;
    world
        .data_volume("disk", json!({"upload": {}}), "8Mi", json!({}))
        .await;
    world.phase("disk", "UploadReady").await;
    let (status, why) = world.send(Method::POST, &token, full(vec![7; 4 << 20])).await;
    assert!(
        status == StatusCode::SERVICE_UNAVAILABLE && why.contains("doesn't exist"),
        "{status} {why}"
    );
    let request = Request::post("/v1beta1/upload").body(full("x")).unwrap();
    assert_eq!(
        world.uploads.serve(request).await.status(),
        StatusCode::BAD_REQUEST
    );
    world.end().await;
}
