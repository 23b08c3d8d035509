//! Backends as they are at run time: endpoints with their connections, their load and their health. All of it outlives the
//! table that named them, as long as the next one names them too.

pub(crate) mod cluster;
pub(crate) mod dial;
pub(crate) mod endpoint;
pub(crate) mod health;
pub(crate) mod pool;
pub(crate) mod tls;

pub(crate) use endpoint::{Endpoint, InFlight};
