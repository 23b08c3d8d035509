//! Connections from the node into a guest.

use std::net::Ipv4Addr;
use std::time::Duration;

use fairway_fabric::Talk;
use fairway_machines_frames::Tenant;
use fairway_machines_frames::decide::Denied;
use fairway_machines_frames::packet::{TCP, UDP};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

use super::{FlowEnd, tcp, udp};
use crate::state::Shared;

/// How long a guest may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// What is under way between the dialler and the stack.
const PIPE: usize = 64 * 1024;

/// Why a guest was not reached.
#[derive(Debug)]
pub(crate) enum DialFailed {
    Denied(Denied),
    Refused,
    Timeout,
}

pub(crate) type Dialled = oneshot::Sender<Result<DuplexStream, DialFailed>>;

/// Opens a connection, and tells `done` when it is there or is not.
pub(crate) fn dial(
    shared: &Shared,
    tenant: Tenant,
    to: (Ipv4Addr, u16),
    origin: Option<Ipv4Addr>,
    done: Dialled,
) {
    let mut core = shared.borrow_mut();
    let now = core.now();
    let open = match core.switch.open_from_node(tenant, to, TCP, origin, now) {
        Ok(open) => open,
        Err(denied) => {
            // The dialler may have gone; then nobody wants to know.
            let _ = done.send(Err(DialFailed::Denied(denied)));
            return;
        }
    };
    let mut done = Some(done);
    let started = core.start_flow(
        Shared::clone(shared),
        open.tuple,
        open.tuple.dst,
        |end, packets| {
            let done = done.take();
            async move {
                if let Some(done) = done {
                    connect(end, packets, done).await;
                }
            }
        },
    );
    if started.is_none() {
        core.switch.close(&open.tuple);
        if let Some(done) = done {
            let _ = done.send(Err(DialFailed::Denied(Denied::Full)));
        }
    }
}

/// Datagrams that wait in each direction.
const WAITING: usize = 64;

/// Begins to exchange datagrams with a guest.
pub(crate) fn talk(
    shared: &Shared,
    tenant: Tenant,
    to: (Ipv4Addr, u16),
    origin: Option<Ipv4Addr>,
) -> Result<Talk, Denied> {
    let mut core = shared.borrow_mut();
    let now = core.now();
    let open = core.switch.open_from_node(tenant, to, UDP, origin, now)?;
    let (send, outgoing) = mpsc::channel(WAITING);
    let (incoming, receive) = mpsc::channel(WAITING);
    let started = core.start_flow(
        Shared::clone(shared),
        open.tuple,
        open.tuple.dst,
        |end, packets| udp::from_node(end, packets, outgoing, incoming),
    );
    if started.is_none() {
        core.switch.close(&open.tuple);
        return Err(Denied::Full);
    }
    Ok(Talk { send, receive })
}

async fn connect(end: FlowEnd, mut packets: mpsc::Receiver<Vec<u8>>, done: Dialled) {
    let Some(mut stack) = tcp::Stack::connecting(end.core(), end.tuple()) else {
        let _ = done.send(Err(DialFailed::Refused));
        return;
    };
    let result = match tokio::time::timeout(PATIENCE, tcp::established(&mut stack, &mut packets)).await {
        Ok(true) => {
            let (near, far) = tokio::io::duplex(PIPE);
            if done.send(Ok(far)).is_ok() {
                tcp::carry(&mut stack, &mut packets, near).await;
            }
            return;
        }
        Ok(false) => DialFailed::Refused,
        Err(_) => DialFailed::Timeout,
    };
    let _ = done.send(Err(result));
}
