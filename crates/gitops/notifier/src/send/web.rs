//! Webhooks and Slack.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fairway_gitops_notifications::message::Request;
use fairway_outbound::Outbound;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use serde_json::Value;

/// How much of an answer is read, and how much of it is shown.
const MAX_REPLY: usize = 16 << 10;
const MAX_SHOWN: usize = 200;

pub(super) async fn send(outbound: &Outbound, request: &Request, timeout: Duration) -> Result<(), String> {
    let method = Method::from_bytes(request.method.as_bytes());
    let message = fairway_outbound::Message {
        method: method.map_err(|_| format!("{:?} is not a method", request.method))?,
        url: request.url.clone(),
        headers: headers(request)?,
        body: Bytes::from(request.body.clone()),
        timeout,
        max_reply: MAX_REPLY,
    };
    let reply = outbound.send(message).await.map_err(|error| error.to_string())?;
    judge(request, reply.status, &reply.body)
}

fn headers(request: &Request) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let wrong = || format!("{name:?} cannot be sent as a header");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    if let Some((user, password)) = &request.basic {
        let text = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let value = HeaderValue::from_str(&text).map_err(|_| "the credentials cannot be sent".to_owned())?;
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

/// What an answer means. Slack says 200 to everything, and whether it has accepted it in the body.
fn judge(request: &Request, status: u16, body: &[u8]) -> Result<(), String> {
    let host = request.url.parse::<Uri>().ok();
    let host = host.as_ref().and_then(Uri::host).unwrap_or("the receiver");
    let shown: String = String::from_utf8_lossy(body).chars().take(MAX_SHOWN).collect();
    if !(200..300).contains(&status) {
        return Err(format!("{host} answered {status}: {shown}"));
    }
    if !request.is_slack {
        return Ok(());
    }
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    match &answer["ok"] {
        Value::Bool(true) => Ok(()),
        _ => Err(match answer["error"].as_str() {
            Some(why) => format!("{host} refuses it: {why}"),
            None => format!("{host} does not answer as Slack does: {shown}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(is_slack: bool) -> Request {
        Request {
            method: "POST".to_owned(),
            url: "https://hooks.example.com/services/SECRET".to_owned(),
            headers: vec![("X-A".to_owned(), "b".to_owned())],
            basic: Some(("u".to_owned(), "p".to_owned())),
            body: String::new(),
            is_slack,
        }
    }

    #[test]
    fn answers_are_judged() {
        for (is_slack, status, body, expected) in [
            (false, 200, "", None),
            (false, 204, "x", None),
            (false, 302, "", Some("hooks.example.com answered 302: ")),
            (
                false,
                404,
                "no_service",
                Some("hooks.example.com answered 404: no_service"),
            ),
            (true, 200, "{\"ok\": true}", None),
            (
                true,
                200,
                "{\"ok\": false, \"error\": \"channel_not_found\"}",
                Some("refuses it: channel_not_found"),
            ),
            (true, 200, "ok", Some("does not answer as Slack does: ok")),
            (true, 500, "", Some("answered 500")),
        ] {
            let found = judge(&request(is_slack), status, body.as_bytes()).err();
            match expected {
                None => assert_eq!(found, None, "{status} {body}"),
                Some(why) => {
                    let found = found.unwrap();
                    assert!(found.contains(why) && !found.contains("SECRET"), "{found}");
                }
            }
        }
    }

    #[test]
    fn headers_are_checked() {
        let sound = headers(&request(false)).unwrap();
        assert_eq!(
            (&sound["x-a"], &sound["authorization"]),
            (&"b".parse().unwrap(), &"Basic dTpw".parse().unwrap())
        );
        for (name, value) in [("a b", "c"), ("a", "b\r\nc: d"), ("", "x")] {
            let wrong = Request {
                headers: vec![(name.to_owned(), value.to_owned())],
                ..request(false)
            };
            assert!(headers(&wrong).is_err(), "{name:?} {value:?}");
        }
    }
}
