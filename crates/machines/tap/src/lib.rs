//! Network cards on devices of the kernel, for hosts where Fairway may make them.
//!
//! ```text
//!  QEMU ── TAP g1 ─┬─ what the switch has allowed ──► g2 ── TAP ── QEMU
//!                  └─ everything else ──► TAP s1 ── the switch ── s2 ──► g2
//! ```
//!
//! Every card has two TAPs in a network namespace of the node's own: one whose other end is in QEMU, and one whose other end is in the
//! switch. nftables joins them at their ingress, so that no stack, bridge or address of the kernel is involved, and nothing that a guest
//! sends goes anywhere else. The switch judges as it always does; of a connection that is busy it tells the kernel, which then carries the
//! packets of exactly that connection by itself, for a few seconds at a time, unless they open or end one. So nothing is decided
//! here, and what a machine sees is the same with and without.
//!
//! Nothing of it is made to last: a TAP is gone with the process that holds it, rules with the namespace, and a namespace that
//! nobody uses with the next start.
//!
//! Beside `fairway-memory` this is the only crate with unsafe code: one ioctl (`device`), for which no safe crate of a reasonable size exists.
//! The crate must not judge frames, nor know machines.

mod device;
mod launch;
mod rules;
mod space;

pub use launch::{Card, attach};
pub use rules::Carried;
pub use space::{Inside, Missing, Space, guest_device, switch_device};
