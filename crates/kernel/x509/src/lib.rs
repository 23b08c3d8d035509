//! Certificates and requests for them: read with bounds, judged, and written.
//!
//! Everything here is a function of its arguments. Keys, clocks and randomness stay with the caller, who hands in a serial
//! number and a time and signs the bytes that [`Template::to_be_signed`] returns. Certificates are written here and not by
//! a library because a request's subject must come out as it came in, with all of its organisations.

#![warn(missing_docs)]

mod certificate;
mod der;
mod life;
mod pem;
mod request;
mod template;
mod usage;

pub use certificate::{Certificate, CertificateError};
pub use life::{Expired, asked_for, due, renewal_moment, window};
pub use pem::{Block, blocks, encode};
pub use request::{MAX_REQUEST, Request, RequestError, Subject};
pub use template::{Algorithm, Issuer, Template, subject};
pub use usage::{UnknownUsage, Usages};
