//! Requests to servers of others: made from a rule and what is known of a request, and their answers read.

use bytes::Bytes;
use fairway_gateway_policy::auth::{Credentials, HttpCall, SecretRef};
use fairway_gateway_policy::expression::{EvalError, Facts, stringify};
use fairway_outbound::{Message, Reply};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use crate::outside::Outside;

/// The most that is read of an answer.
const MAX_REPLY: usize = 256 * 1024;

/// A request that lacks nothing but a shared secret.
#[derive(Debug)]
pub(crate) struct Prepared {
    message: Message,
    secret: Option<(SecretRef, Credentials)>,
}

/// Makes the request that a rule describes.
pub(crate) fn prepare(call: &HttpCall, facts: &Facts<'_>) -> Result<Prepared, EvalError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &call.headers {
        let value = HeaderValue::try_from(value.text(facts)?);
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), value) {
            headers.insert(name, value);
        }
    }
    let (content_type, body) = match (call.is_post, &call.body) {
        (false, _) => ("text/plain", String::new()),
        (true, Some(body)) => (content_type(call), body.text(facts)?),
        (true, None) => (content_type(call), parameters(call, facts)?),
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(Prepared {
        message: Message {
            method: if call.is_post { Method::POST } else { Method::GET },
            url: call.url.text(facts)?,
            headers,
            body: Bytes::from(body),
            timeout: call.timeout,
            max_reply: MAX_REPLY,
        },
        secret: call.shared_secret.clone(),
    })
}

fn content_type(call: &HttpCall) -> &'static str {
    match call.is_json {
        true => "application/json",
        false => "application/x-www-form-urlencoded",
    }
}

fn parameters(call: &HttpCall, facts: &Facts<'_>) -> Result<String, EvalError> {
    let mut map = Map::new();
    for (name, value) in &call.parameters {
        map.insert(name.clone(), value.value(facts)?);
    }
    if call.is_json {
        return Ok(Value::Object(map).to_string());
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in &map {
        form.append_pair(name, &stringify(value));
    }
    Ok(form.finish())
}

impl Prepared {
    /// Where it goes, without any secret.
    pub(crate) fn url(&self) -> &str {
        &self.message.url
    }
}

/// Whose an address is, for those who must not see what requests bring with them: a path may name a user, a query hold a key.
pub(crate) fn origin(url: &str) -> String {
    let uri = url.parse::<http::Uri>().unwrap_or_default();
    match (uri.scheme_str(), uri.host(), uri.port()) {
        (Some(scheme), Some(host), Some(port)) => format!("{scheme}://{host}:{port}"),
        (Some(scheme), Some(host), None) => format!("{scheme}://{host}"),
        _ => "the server".to_owned(),
    }
}

/// Sends it, and reads the answer: JSON, or text.
pub(crate) async fn send(prepared: Prepared, outside: Outside) -> Result<Value, String> {
    let mut message = prepared.message;
    // As errors name it: before a secret is put into it.
    let url = message.url.clone();
    if let Some((secret, place)) = prepared.secret {
        let fields = outside.cluster.secret(secret.clone()).await?;
        let value = field(&fields, secret.key.as_deref().unwrap_or(""))
            .ok_or_else(|| format!("Secret {}/{} has no such field", secret.namespace, secret.name))?;
        put(&mut message, &place, &value)?;
    }
    let reply = outside.web.send(message).await?;
    read(&url, &reply)
}

pub(crate) fn read(url: &str, reply: &Reply) -> Result<Value, String> {
    if !(200..300).contains(&reply.status) {
        return Err(format!("{url} answered {}", reply.status));
    }
    if reply.body.len() >= MAX_REPLY {
        return Err(format!("{url} answered with {MAX_REPLY} bytes or more"));
    }
    match serde_json::from_slice(&reply.body) {
        Ok(value) => Ok(value),
        Err(_) => Ok(Value::String(String::from_utf8_lossy(&reply.body).into_owned())),
    }
}

/// A field of a Secret's `data`.
pub(crate) fn field(data: &Value, name: &str) -> Option<String> {
    use base64::Engine as _;
    let encoded = data[name].as_str()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok()
}

fn put(message: &mut Message, place: &Credentials, value: &str) -> Result<(), String> {
    let header = |text: String| {
        HeaderValue::try_from(text).map_err(|_| "the shared secret cannot stand in a header".to_owned())
    };
    match place {
        Credentials::AuthorizationHeader(prefix) => {
            message
                .headers
                .insert(AUTHORIZATION, header(format!("{prefix} {value}"))?);
        }
        Credentials::CustomHeader(name) => {
            message.headers.insert(name.clone(), header(value.to_owned())?);
        }
        Credentials::Cookie(name) => {
            message.headers.insert(COOKIE, header(format!("{name}={value}"))?);
        }
        Credentials::QueryString(name) => {
            let pair = form_urlencoded::Serializer::new(String::new())
                .append_pair(name, value)
                .finish();
            let joint = if message.url.contains('?') { '&' } else { '?' };
            message.url = format!("{}{joint}{pair}", message.url);
        }
    }
    Ok(())
}

/// A question to an OAuth 2.0 server about a token.
pub(crate) fn introspection(
    endpoint: &str,
    token: &str,
    hint: &str,
    client: (&str, &str),
    timeout: std::time::Duration,
) -> Message {
    use base64::Engine as _;
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("token", token)
        .append_pair("token_type_hint", hint)
        .finish();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", client.0, client.1));
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    if let Ok(value) = HeaderValue::try_from(format!("Basic {basic}")) {
        headers.insert(AUTHORIZATION, value);
    }
    Message {
        method: Method::POST,
        url: endpoint.to_owned(),
        headers,
        body: Bytes::from(body),
        timeout,
        max_reply: MAX_REPLY,
    }
}

/// A question to a userinfo endpoint, with somebody's own token.
pub(crate) fn userinfo(url: String, token: &str, timeout: std::time::Duration) -> Message {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Ok(value) = HeaderValue::try_from(format!("Bearer {token}")) {
        headers.insert(AUTHORIZATION, value);
    }
    Message {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        timeout,
        max_reply: MAX_REPLY,
    }
}
