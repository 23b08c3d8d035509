//! Datagrams of guests: to the outside, through a socket per flow, and to the resolver.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use fairway_dns::{Server, Transport};
use fairway_machines_frames::build::{self, Route, UDP_PAYLOAD};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::tcp::Target;
use super::{FlowEnd, outside};
use fairway_machines_frames::track::Tuple;

/// How long a flow may be silent: less than the switch remembers it for.
const QUESTION: Duration = Duration::from_secs(25);
const TALK: Duration = Duration::from_secs(170);

/// Carries datagrams to the outside and back.
pub(super) async fn to_outside(end: FlowEnd, mut packets: mpsc::Receiver<Vec<u8>>, target: Target) {
    let socket = match connected(target).await {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(guest = %end.guest, to = %target.address, port = target.port, %error, "refused a guest's datagrams");
            return;
        }
    };
    let mut buffer = vec![0; UDP_PAYLOAD];
    let mut patience = QUESTION;
    loop {
        tokio::select! {
            payload = packets.recv() => match payload {
                // A datagram that the host does not take is lost, as datagrams are.
                Some(payload) => { let _ = socket.send(&payload).await; }
                None => return,
            },
            received = socket.recv(&mut buffer) => match received {
                Ok(length) => {
                    patience = TALK;
                    send(&end, &buffer[..length]);
                }
                // Nobody listens there: the guest's next datagram tries again, with a new flow.
                Err(_) => return,
            },
            () = tokio::time::sleep(patience) => return,
        }
    }
}

async fn connected(target: Target) -> io::Result<UdpSocket> {
    if !target.named {
        outside::must_be_elsewhere(target.address)?;
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    // The kernel then drops what comes from elsewhere.
    socket.connect((target.address, target.port)).await?;
    Ok(socket)
}

/// Questions of one port of a guest that may be open at a time. Resolvers ask for several kinds of addresses at once.
const QUESTIONS: usize = 16;

/// Answers questions about names.
pub(super) async fn to_resolver(
    end: FlowEnd,
    mut packets: mpsc::Receiver<Vec<u8>>,
    names: Arc<Server>,
    workspace: Option<String>,
) {
    let workspace = workspace.unwrap_or_default();
    let ask = async |question: Vec<u8>| names.answer(&workspace, &question, Transport::Datagram).await;
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            question = packets.recv(), if open.len() < QUESTIONS => match question {
                Some(question) => open.push(ask(question)),
                None => return,
            },
            Some(answer) = open.next() => if let Some(answer) = answer {
                send(&end, &answer);
            },
            () = tokio::time::sleep(QUESTION) => return,
        }
    }
}

/// Carries datagrams between the node and a guest.
pub(super) async fn from_node(
    end: FlowEnd,
    mut packets: mpsc::Receiver<Vec<u8>>,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
    incoming: mpsc::Sender<Vec<u8>>,
) {
    // The node opened it, so the guest is at the tuple's other end.
    let tuple = end.tuple().reversed();
    let mut patience = QUESTION;
    loop {
        tokio::select! {
            payload = outgoing.recv() => match payload {
                Some(payload) => send_as(&end, tuple, &payload),
                None => return,
            },
            payload = packets.recv() => match payload {
                Some(payload) => {
                    patience = TALK;
                    // Whoever does not listen loses datagrams.
                    let _ = incoming.try_send(payload);
                }
                None => return,
            },
            () = tokio::time::sleep(patience) => return,
        }
    }
}

/// Sends a payload back to the guest, in the name of whom it had asked.
fn send(end: &FlowEnd, payload: &[u8]) {
    send_as(end, end.tuple(), payload);
}

/// Sends a payload to the guest that is the source of `tuple`. What needs more than one packet is dropped: the switch does
/// not make pieces.
fn send_as(end: &FlowEnd, tuple: Tuple, payload: &[u8]) {
    let mut core = end.core().borrow_mut();
    let gateway = &core.switch.topology().gateway;
    if payload.len() + 28 > usize::from(gateway.mtu) {
        return;
    }
    let gateway = gateway.mac;
    if let Some((_, mac)) = core.switch.place_of(tuple.src) {
        let route = Route::new(gateway, mac, tuple.dst, tuple.src);
        let frame = build::udp(route, tuple.dport, tuple.sport, payload);
        core.send_to_guest(tuple.src, &frame);
    }
}
