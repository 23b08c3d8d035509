//! The one DNS server of the platform. Machines ask it through the gateway of their network; who asks decides what exists:
//! the same name means another Service in another workspace, or none.
//!
//! * [`zone`]: the names of a workspace, built from Services and machines as Kubernetes' DNS specification says. Pure.
//! * [`answer`]: a question and a zone to an answer, or to a question for somebody else. Pure.
//! * [`server`]: zones by workspace, replaced as they change; messages over datagrams and streams.
//! * [`socket`]: the same on sockets of the host, for names that are published.
//! * [`upstream`]: questions about the rest of the world, if the operator allows them.
//!
//! The words of the protocol are `hickory-proto`'s; its server is not used, because questions come out of a userspace
//! network stack and not out of sockets. The crate must not know where zones come from.

pub mod answer;
pub mod server;
pub mod socket;
pub mod upstream;
pub mod zone;

pub use server::{Server, Transport};
pub use socket::Sockets;
pub use upstream::Upstream;
pub use zone::Zone;
