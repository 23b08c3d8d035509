//! What only the guest knows: the end of its console, and whether somebody listens at a port. Both through KubeVirt's subresources, so that
//! rights are asked as for anybody who looks himself.

use std::time::Duration;

use fairway_websocket::handshake::Offer;
use fairway_why_chain::Answer;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;

/// KubeVirt's subprotocol.
const PROTOCOL: &str = "plain.kubevirt.io";
/// How long a port may take. A guest on the same host answers in milliseconds.
const PATIENCE: Duration = Duration::from_millis(400);
/// The most of an answer that is read.
const MOST: usize = 1 << 20;

/// A text, if it can be read.
pub(crate) async fn plain(client: &Client, path: &str) -> Option<String> {
    let request = Request::get(path)
        .header("accept", "*/*")
        .body(Body::empty())
        .ok()?;
    let response = client.send(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = http_body_util::Limited::new(response.into_body(), MOST)
        .collect()
        .await
        .ok()?;
    Some(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

/// Tries a port of a guest.
pub(crate) async fn port(client: &Client, namespace: &str, name: &str, port: u16) -> Answer {
    let path = format!(
        "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}/portforward/{port}/tcp"
    );
    let Ok(offer) = Offer::new(PROTOCOL) else {
        return Answer::Unknown("no handshake could be made".to_owned());
    };
    let Ok(mut request) = Request::get(path).body(Body::empty()) else {
        return Answer::Unknown("no request could be made".to_owned());
    };
    offer.add_to(request.headers_mut());
    let response = match tokio::time::timeout(PATIENCE, client.send(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Answer::Unknown(error.to_string()),
        Err(_) => return Answer::Closed(format!("no answer within {} ms", PATIENCE.as_millis())),
    };
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => Answer::Open,
        status => {
            let body = http_body_util::Limited::new(response.into_body(), MOST)
                .collect()
                .await;
            let body = body.map(|it| it.to_bytes()).unwrap_or_default();
            let said: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            let said = said.and_then(|it| it["message"].as_str().map(str::to_owned));
            let said = said.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
            match status.is_server_error() || said.contains("refused") {
                true => Answer::Closed(said),
                false => Answer::Unknown(said),
            }
        }
    }
}
