//! Where a connection came in, and from whom: the same for all of its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use fairway_fabric::Origin;
use http::HeaderValue;

use crate::upstream::dial;

pub(crate) struct Peer {
    pub(crate) client: SocketAddr,
    /// The door as the table names it.
    pub(crate) door: SocketAddr,
    /// The port that was really connected to.
    pub(crate) port: u16,
    pub(crate) secure: bool,
    /// The server name that the client asked for, in lower case.
    pub(crate) server_name: Option<Arc<str>>,
    pub(crate) origin: Origin,
    /// Written on every request, so they are made once.
    pub(crate) forwarded_for: HeaderValue,
    pub(crate) forwarded_port: HeaderValue,
}

impl Peer {
    pub(crate) fn new(
        client: SocketAddr,
        door: SocketAddr,
        port: u16,
        server_name: Option<Option<String>>,
    ) -> Self {
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        let text = |text: String| {
            HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static("unknown"))
        };
        Self {
            client,
            door,
            port,
            secure: server_name.is_some(),
            server_name: server_name.flatten().map(|name| name.to_ascii_lowercase().into()),
            origin: dial::origin(client.ip()),
            forwarded_for: text(client.ip().to_string()),
            forwarded_port: text(port.to_string()),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
