//! How far the processes of a machine are kept in: which user they run as ([`users`]), in which control group ([`groups`]) and with
//! which limits ([`limits`]), and what a host lacks for that, in words for whoever looks after it ([`missing`]).
//! [`starved`] tells of machines that came to the limit of their memory.
//!
//! QEMU interprets what a guest does, and a guest is a stranger: whoever finds a mistake in QEMU is left with what its process may do. A
//! seccomp filter and a private directory are there always; a user and limits of their own need rights that not every node has.

pub mod groups;
pub mod limits;
pub mod missing;
pub mod starved;
pub mod users;
