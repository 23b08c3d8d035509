//! HTTP, on both sides of the kernel: bodies, negotiation, answers, the listener.

pub mod accept;
pub mod body;
mod client_certificate;
pub mod gzip;
pub mod listener;
pub mod negotiate;
pub mod respond;
