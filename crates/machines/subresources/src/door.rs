//! Ways into a running machine: console, screen, ports.
//!
//! A request is judged in upstream's order: the machine first, then whether the client speaks WebSocket, then whether the machine
//! can be reached; so every refusal is a `Status`, and nobody opens a console who cannot use it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_apiservice::websocket::{self, Accepted};
use fairway_apiservice::{Body, full};
use fairway_fabric::{Connection, Destination};
use fairway_machines_guests::{Door, Order};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::answer;
use crate::decide;
use crate::refusal::Refusal;
use crate::service::{Asked, Hands};
use crate::stream::{self, Manner};

/// KubeVirt's subprotocol: bytes in binary messages.
const PROTOCOL: &str = "plain.kubevirt.io";

impl Hands {
    pub(crate) async fn stream(
        &self,
        asked: &Asked,
        handshake: Handshake,
        query: &str,
    ) -> Result<Response<Body>, Refusal> {
        let info = &asked.info;
        match (info.subresource.as_str(), info.rest.as_str()) {
            ("portforward", rest) => {
                let vmi = match info.resource.as_str() {
                    "virtualmachines" => asked.objects.instance_of_machine().await?,
                    _ => asked.objects.instance().await?,
                };
                decide::port_forward(&vmi)?;
                let address = decide::address(&vmi)?;
                let port = decide::port(rest)?;
                let accepted = accepted(handshake).await?;
                let to = Destination::new(asked.workspace.as_str(), address, port.0);
                let node = vmi["status"]["nodeName"].as_str().unwrap_or_default();
                let dialled = match self.guests.dial(node, &to) {
                    Some(elsewhere) => elsewhere.await,
                    None => self.fabric.dial(to.clone()).await,
                };
                let machine = dialled.map_err(|error| Refusal::internal(&format!("dialing VM: {error}")))?;
                Ok(carry(accepted, machine, Manner::PORT))
            }
            ("vnc", "screenshot") => self.screenshot(asked).await,
            ("console", "tail") => self.tail(asked, query).await,
            // What it complains of may be part of a Secret, and is on the console, too: the same right is asked for.
            ("console", "cloud-init") => self.ask(asked, Order::CloudInit).await,
            ("console", "") => {
                let vmi = asked.objects.instance().await?;
                decide::console(&vmi)?;
                self.seat(asked, &vmi, handshake, Door::Console).await
            }
            ("vnc", "") => {
                let vmi = asked.objects.instance().await?;
                decide::vnc(&vmi)?;
                self.seat(asked, &vmi, handshake, Door::Vnc).await
            }
            ("usbredir", _) => {
                decide::usb_redirection(&asked.objects.instance().await?)?;
                Err(Refusal::bad_request(
                    "USB redirection is not supported by Fairway",
                ))
            }
            ("vsock", _) => {
                decide::vsock(&asked.objects.instance().await?)?;
                Err(Refusal::bad_request("VSOCK is not supported by Fairway"))
            }
            (_, rest) => Err(Refusal {
                code: 404,
                reason: "NotFound".to_owned(),
                ..Refusal::bad_request(format!("the server has no {}/{rest}", info.subresource))
            }),
        }
    }

    async fn seat(
        &self,
        asked: &Asked,
        vmi: &Value,
        handshake: Handshake,
        door: Door,
    ) -> Result<Response<Body>, Refusal> {
        let node = decide::reachable(vmi)?;
        let accepted = accepted(handshake).await?;
        let key = asked.key();
        let opened = self.guests.open(node, &key, door).await;
        let machine = opened.map_err(|refusal| asked.not_reached(refusal))?;
        Ok(carry(accepted, machine, Manner::SEAT))
    }

    /// What the guest printed last, for whoever wants to know and not to type. Upstream has no such thing.
    async fn tail(&self, asked: &Asked, query: &str) -> Result<Response<Body>, Refusal> {
        let vmi = asked.objects.instance().await?;
        let node = decide::tail(&vmi)?;
        let bytes = decide::tail_length(query)?;
        let told = self.order(asked, node, Order::ConsoleTail { bytes }).await?;
        Ok(answer::text(told["tail"].as_str().unwrap_or_default().to_owned()))
    }

    async fn screenshot(&self, asked: &Asked) -> Result<Response<Body>, Refusal> {
        let vmi = asked.objects.instance().await?;
        decide::vnc(&vmi)?;
        let node = decide::reachable(&vmi)?;
        let told = self.order(asked, node, Order::Screenshot).await?;
        let picture = told["png"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let picture = picture.ok_or_else(|| Refusal::internal("failed to retrieve the VNC screen"))?;
        Ok(answer::png(picture))
    }
}

/// What became of the client's wish to speak WebSocket.
pub(crate) type Handshake = Result<Accepted, Box<Response<Body>>>;

/// Judges whether a client speaks WebSocket, which not every request here must.
pub(crate) fn handshake(request: &Request<Body>) -> Handshake {
    websocket::accept(request, &[PROTOCOL])
}

async fn accepted(handshake: Handshake) -> Result<Accepted, Refusal> {
    match handshake {
        Ok(accepted) => Ok(accepted),
        Err(refused) => {
            let why = refused.into_body().collect().await;
            let why = why.map(|it| it.to_bytes()).unwrap_or_default();
            Err(Refusal::bad_request(String::from_utf8_lossy(&why).trim()))
        }
    }
}

/// Answers, and carries from then on.
fn carry(accepted: Accepted, machine: Box<dyn Connection>, manner: Manner) -> Response<Body> {
    let Accepted {
        response, upgrade, ..
    } = accepted;
    tokio::spawn(async move {
        match upgrade.io().await {
            Ok(client) => stream::carry(client, machine, manner).await,
            // It left before it was answered.
            Err(error) => tracing::debug!(%error, "a client did not wait for its stream"),
        }
    });
    response.map(|_| full(Vec::new()))
}
