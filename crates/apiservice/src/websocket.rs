//! The handshake of WebSockets (RFC 6455, section 4.2), so that each domain need not write it. Frames are the domain's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::{Body, Upgrade, empty, full};

/// What the RFC appends to the client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A handshake that succeeded.
#[derive(Debug)]
pub struct Accepted {
    /// What to answer.
    pub response: Response<Body>,
    /// The connection to come.
    pub upgrade: Upgrade,
    /// The subprotocol that was chosen, if one was.
    pub protocol: Option<String>,
}

/// Accepts a WebSocket. `protocols` are the subprotocols that the domain speaks, best first; none: any client will do. An
/// error is the answer to a request that is no handshake.
pub fn accept(request: &Request<Body>, protocols: &[&str]) -> Result<Accepted, Box<Response<Body>>> {
    let headers = request.headers();
    let refused = |code: StatusCode, why: &str| {
        let mut response = Response::new(full(format!("{why}\n")));
        *response.status_mut() = code;
        Box::new(response)
    };
    if !has_token(headers, &UPGRADE, "websocket") || !has_token(headers, &CONNECTION, "upgrade") {
        return Err(refused(
            StatusCode::UPGRADE_REQUIRED,
            "this path speaks WebSocket",
        ));
    }
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != "13")
    {
        let mut response = refused(
            StatusCode::UPGRADE_REQUIRED,
            "this path speaks version 13 of WebSocket",
        );
        response
            .headers_mut()
            .insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(response);
    }
    let (Some(key), Some(upgrade)) = (
        headers.get(SEC_WEBSOCKET_KEY),
        request.extensions().get::<Upgrade>(),
    ) else {
        return Err(refused(
            StatusCode::BAD_REQUEST,
            "the handshake has no Sec-WebSocket-Key",
        ));
    };
    let offered: Vec<&str> = tokens(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    let protocol = protocols.iter().find(|known| offered.contains(known)).copied();
    if protocol.is_none() && !protocols.is_empty() && !offered.is_empty() {
        let why = format!("the subprotocols of this path are: {}", protocols.join(", "));
        return Err(refused(StatusCode::BAD_REQUEST, &why));
    }
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(value) = HeaderValue::from_str(&answer_to(key.as_bytes())) {
        answer.insert(SEC_WEBSOCKET_ACCEPT, value);
    }
    if let Some(value) = protocol.and_then(|protocol| HeaderValue::from_str(protocol).ok()) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
    Ok(Accepted {
        response,
        upgrade: upgrade.clone(),
        protocol: protocol.map(str::to_owned),
    })
}

fn answer_to(key: &[u8]) -> String {
    STANDARD.encode(digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[key, GUID.as_bytes()].concat(),
    ))
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_rfc() {
        assert_eq!(
            answer_to(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }

    #[test]
    fn handshakes_are_accepted_or_told_what_is_wrong() {
        let good = [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let check = |without: &str, offered: &str, protocols: &[&str]| {
            let mut request = Request::new(empty());
            for (name, value) in good.iter().filter(|(name, _)| *name != without) {
                request
                    .headers_mut()
                    .insert(*name, HeaderValue::from_static(value));
            }
            if !offered.is_empty() {
                request
                    .headers_mut()
                    .insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(offered).unwrap());
            }
            request
                .extensions_mut()
                .insert(Upgrade::new(async { Err("not in this test".into()) }));
            match accept(&request, protocols) {
                Ok(accepted) => (101, accepted.protocol.unwrap_or_default()),
                Err(refused) => (refused.status().as_u16(), String::new()),
            }
        };
        assert_eq!(check("", "", &[]), (101, String::new()));
        assert_eq!(check("", "a, b", &[]), (101, String::new()));
        assert_eq!(check("", "a, b", &["b", "a"]), (101, "b".to_owned()));
        assert_eq!(check("", "", &["b"]), (101, String::new()));
        assert_eq!(check("", "a", &["b"]).0, 400);
        assert_eq!(check("upgrade", "", &[]).0, 426);
        assert_eq!(check("connection", "", &[]).0, 426);
        assert_eq!(check("sec-websocket-version", "", &[]).0, 426);
        assert_eq!(check("sec-websocket-key", "", &[]).0, 400);
    }
}
