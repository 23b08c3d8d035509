//! The userspace switch of a node.
//!
//! QEMU listens on a unix socket per network card (`-netdev stream,server=on`) and speaks Ethernet frames with their length
//! before them; the switch connects. So the switch may end and start again, as a new process, and the guests are back on
//! the network without noticing more than lost frames. Nothing here needs a privilege.
//!
//! ```text
//!  QEMU ── unix socket ──┐                          ┌── host's sockets: NAT for TCP and UDP
//!  QEMU ── unix socket ──┤ port tasks ── decide ── gateway ── DNS
//!  QEMU ── unix socket ──┘ (fairway-machines-frames) └── fabric: dial(workspace, address, port)
//! ```
//!
//! * Everything runs on one thread of its own, with one owner of the state (`state`), so there are no locks on the
//!   way of a frame, and neither the API server nor a guest's flood disturbs the other more than one core can.
//! * A port task reads as much as there is, has every frame decided in place, and writes what goes to one port with one
//!   system call, from the buffer that it was read into.
//! * The gateway ends TCP connections with one small `smoltcp` stack per connection; which stack a packet belongs to is
//!   looked up, not searched for, and a connection that goes wrong takes nothing with it.
//! * A card that is a device of the kernel (`kernel`) is a port like any other; what the switch has allowed between two of them the kernel
//!   may carry by itself.
//!
//! The crate must not know Kubernetes objects: it is handed a plan of guests, Services and policies.

mod gateway;
mod handle;
mod kernel;
mod port;
mod state;
mod tenants;
mod wire;

pub use fairway_machines_frames as frames;
pub use fairway_machines_tap::Space;
pub use handle::{Applied, Elsewhere, Network, Settings, StartError};
pub use state::Counters;
