//! What is found out of a request before anybody decides about it, whichever protocol it came over: its host, its plain path,
//! and whether it is one that may be looked at at all.

use std::borrow::Cow;

use http::header::{EXPECT, HOST};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri, Version};

use crate::h1::head::Bad;
use crate::hops;
use crate::path;

/// The host of a request, in lower case and without port. Empty if it named none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) String);

const fn bad(why: &'static str) -> Bad {
    Bad {
        status: http::StatusCode::BAD_REQUEST,
        why,
    }
}

/// Checks and cleans the head: its target becomes a plain path, `Host` says where it goes, and what belonged to the client's
/// connection is gone.
pub(crate) fn admit(parts: &mut Parts) -> Result<Host, Bad> {
    let host = host(parts)?;
    plain_target(parts)?;
    hops::remove(&mut parts.headers);
    // Answered here, because the wait would otherwise be ours.
    parts.headers.remove(EXPECT);
    Ok(host)
}

fn host(parts: &mut Parts) -> Result<Host, Bad> {
    let mut all = parts.headers.get_all(HOST).iter();
    let said = match all.next() {
        Some(value) => Some(value.to_str().map_err(|_| bad("Host is malformed"))?),
        None => None,
    };
    // HTTP/2 carries it beside `:authority`, as often as a client likes; a backend may look at any of them.
    if all.next().is_some() {
        return Err(bad("more than one Host"));
    }
    if let Some(authority) = parts.uri.authority() {
        let authority = authority.as_str();
        if authority.contains('@') {
            return Err(bad("the target names a user"));
        }
        match said {
            // Whoever is behind us may look at the other one.
            Some(said) if !said.eq_ignore_ascii_case(authority) => {
                return Err(bad("the target and Host name different hosts"));
            }
            Some(_) => {}
            None => {
                let value =
                    HeaderValue::from_str(authority).map_err(|_| bad("the target's host is malformed"))?;
                let host = Host(plain_host(authority)?);
                parts.headers.insert(HOST, value);
                return Ok(host);
            }
        }
    }
    match said {
        Some(said) => plain_host(said).map(Host),
        None if parts.version == Version::HTTP_10 => Ok(Host(String::new())),
        None => Err(bad("no host")),
    }
}

/// Lower case, without port.
fn plain_host(host: &str) -> Result<String, Bad> {
    const MALFORMED: Bad = bad("Host is not a host name");
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or(MALFORMED)?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(MALFORMED);
            }
            (
                Cow::Owned(format!("[{address}]")),
                rest.strip_prefix(':').or(rest.is_empty().then_some("")),
            )
        }
        None => match host.split_once(':') {
            Some((name, port)) => (Cow::Borrowed(name), Some(port)),
            None => (Cow::Borrowed(host), Some("")),
        },
    };
    let port = port.ok_or(MALFORMED)?;
    if !port.bytes().all(|byte| byte.is_ascii_digit()) || port.len() > 5 {
        return Err(MALFORMED);
    }
    let bracketed = name.starts_with('[');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if name.is_empty() || name.len() > 255 || (!bracketed && !name.bytes().all(fits)) {
        return Err(MALFORMED);
    }
    // A name with its last dot is the same name.
    let mut name = name.strip_suffix('.').map_or(&*name, |name| name).to_owned();
    name.make_ascii_lowercase();
    Ok(name)
}

fn plain_target(parts: &mut Parts) -> Result<(), Bad> {
    let Some(target) = parts.uri.path_and_query() else {
        return Err(bad("the target has no path"));
    };
    let plain = path::normalise(target.path()).map_err(|error| bad(error.0))?;
    if !plain.starts_with('/') {
        return Err(bad("the target has no path"));
    }
    let target = match plain {
        Cow::Borrowed(_) if parts.uri.authority().is_none() => return Ok(()),
        Cow::Borrowed(_) => target.clone(),
        Cow::Owned(path) => {
            let text = match target.query() {
                Some(query) => format!("{path}?{query}"),
                None => path,
            };
            PathAndQuery::try_from(text).map_err(|_| bad("the target is malformed"))?
        }
    };
    let mut uri = http::uri::Parts::default();
    uri.path_and_query = Some(target);
    parts.uri = Uri::from_parts(uri).map_err(|_| bad("the target is malformed"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (uri, host, version, expected, reason) in [
            (
                "/",
                Some("A.Example:8080"),
                Version::HTTP_11,
                Some("a.example"),
                "lower case, without port",
            ),
            (
                "/",
                Some("a.example."),
                Version::HTTP_11,
                Some("a.example"),
                "with the last dot",
            ),
            (
                "/",
                Some("[::1]:80"),
                Version::HTTP_11,
                Some("[::1]"),
                "an address",
            ),
            (
                "http://a.example/x",
                Some("a.example"),
                Version::HTTP_11,
                Some("a.example"),
                "said twice",
            ),
            (
                "http://a.example/x",
                None,
                Version::HTTP_2,
                Some("a.example"),
                "by the target alone",
            ),
            (
                "http://a.example/x",
                Some("b.example"),
                Version::HTTP_11,
                None,
                "said differently",
            ),
            (
                "http://a.example:80/x",
                Some("a.example"),
                Version::HTTP_11,
                None,
                "with another port",
            ),
            (
                "http://u@a.example/x",
                Some("a.example"),
                Version::HTTP_11,
                None,
                "with a user",
            ),
            ("/", None, Version::HTTP_11, None, "none"),
            ("/", None, Version::HTTP_10, Some(""), "none, as it was once"),
            ("/", Some(""), Version::HTTP_11, None, "empty"),
            (
                "/",
                Some("a.example:port"),
                Version::HTTP_11,
                None,
                "a port that is none",
            ),
            ("/", Some("a.example/b"), Version::HTTP_11, None, "a path in it"),
            ("/", Some("a b"), Version::HTTP_11, None, "a space in it"),
            ("/", Some("[::1"), Version::HTTP_11, None, "half an address"),
            (
                "/",
                Some("[::1]x"),
                Version::HTTP_11,
                None,
                "something behind an address",
            ),
        ] {
            let mut request = http::Request::builder().uri(uri).version(version);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            let mut parts = request.body(()).unwrap().into_parts().0;
            let got = admit(&mut parts);
            assert_eq!(got.ok().map(|host| host.0).as_deref(), expected, "{reason}");
            if expected.is_some() {
                assert!(parts.uri.authority().is_none(), "{reason}: only the path goes on");
            }
        }
    }
}
