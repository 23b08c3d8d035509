//! What a client says first, and what it must hear then (RFC 6455, section 4.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;

/// What the RFC appends to the client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why there is no WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    #[error("there is no randomness for the key of a WebSocket")]
    Randomness,
    #[error("the server answered {0} instead of switching to WebSocket")]
    Status(StatusCode),
    #[error("the server switched protocols, but not to the WebSocket that was asked for")]
    Answer,
    #[error("the server speaks {0:?} on the WebSocket, which was not offered")]
    Protocol(String),
}

/// A client's offer.
#[derive(Debug)]
pub struct Offer {
    key: String,
    protocol: &'static str,
}

impl Offer {
    /// Offers a subprotocol.
    pub fn new(protocol: &'static str) -> Result<Self, HandshakeError> {
        let mut key = [0; 16];
        SystemRandom::new()
            .fill(&mut key)
            .map_err(|_| HandshakeError::Randomness)?;
        Ok(Self {
            key: STANDARD.encode(key),
            protocol,
        })
    }

    /// Adds what is to be said to a request.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(self.protocol));
        // Base64 is a value of a header.
        if let Ok(key) = HeaderValue::from_str(&self.key) {
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
    }

    /// Whether the answer is the one to this offer. A server need not name the subprotocol.
    pub fn check(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), HandshakeError> {
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(HandshakeError::Status(status));
        }
        let expected = accept_of(&self.key);
        let is_websocket = headers
            .get(UPGRADE)
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
        let accepted = headers
            .get(SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|it| it.as_bytes() == expected.as_bytes());
        if !is_websocket || !accepted {
            return Err(HandshakeError::Answer);
        }
        match headers.get(SEC_WEBSOCKET_PROTOCOL) {
            Some(other) if other.as_bytes() != self.protocol.as_bytes() => Err(HandshakeError::Protocol(
                String::from_utf8_lossy(other.as_bytes()).into_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn accept_of(key: &str) -> String {
    STANDARD.encode(digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[key.as_bytes(), GUID.as_bytes()].concat(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_offer_is_taken() {
        let offer = Offer {
            key: "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
            protocol: "plain.example",
        };
        let mut request = HeaderMap::new();
        offer.add_to(&mut request);
        assert_eq!(request[SEC_WEBSOCKET_KEY], "dGhlIHNhbXBsZSBub25jZQ==");
        let answer = |accept: &str, protocol: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                (UPGRADE, "WebSocket"),
                (SEC_WEBSOCKET_ACCEPT, accept),
                (SEC_WEBSOCKET_PROTOCOL, protocol),
            ] {
                if !value.is_empty() {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            headers
        };
        let right = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        let switched = StatusCode::SWITCHING_PROTOCOLS;
        for (status, accept, protocol, expected) in [
            (switched, right, "plain.example", Ok(())),
            (switched, right, "", Ok(())),
            (switched, "x", "plain.example", Err(HandshakeError::Answer)),
            (
                switched,
                right,
                "other",
                Err(HandshakeError::Protocol("other".to_owned())),
            ),
            (
                StatusCode::OK,
                right,
                "",
                Err(HandshakeError::Status(StatusCode::OK)),
            ),
        ] {
            assert_eq!(offer.check(status, &answer(accept, protocol)), expected);
        }
    }

    #[test]
    fn every_offer_has_its_own_key() {
        let (one, other) = (Offer::new("p").unwrap(), Offer::new("p").unwrap());
        assert_ne!(one.key, other.key);
        assert_eq!(STANDARD.decode(one.key).unwrap().len(), 16);
    }
}
