//! Redirections.

use fairway_gateway_routes::table::{PathMatch, Redirect};
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode, Uri};

use super::changed_path;
use crate::body::Body;

/// What is known of the request.
pub(crate) struct From<'a> {
    pub(crate) scheme: &'a str,
    /// Without port.
    pub(crate) host: &'a str,
    /// The listener's.
    pub(crate) port: u16,
    pub(crate) uri: &'a Uri,
}

/// None if there is nothing sensible to say.
pub(crate) fn redirect(redirect: &Redirect, matched: &PathMatch, from: &From<'_>) -> Option<Response<Body>> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::from_u16(redirect.status).ok()?;
    let location = HeaderValue::from_str(&location(redirect, matched, from)).ok()?;
    response.headers_mut().insert(LOCATION, location);
    Some(response)
}

fn location(redirect: &Redirect, matched: &PathMatch, from: &From<'_>) -> String {
    let scheme = redirect.scheme.as_deref().unwrap_or(from.scheme);
    let own = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    // As the field's description says: the port given, else the new scheme's own, else the listener's.
    let port = match (redirect.port, &redirect.scheme) {
        (Some(port), _) => Some(port),
        (None, Some(_)) => own,
        (None, None) => Some(from.port),
    };
    let port = port.filter(|port| Some(*port) != own);
    let host = redirect.hostname.as_deref().unwrap_or(from.host);
    let path = match &redirect.path {
        Some(change) => changed_path(change, matched, from.uri.path()),
        None => from.uri.path().to_owned(),
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let query = from
        .uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    format!("{scheme}://{host}{port}{path}{query}")
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::table::PathChange;

    use super::*;

    #[test]
    fn where_to() {
        let plain = Redirect {
            scheme: None,
            hostname: None,
            path: None,
            port: None,
            status: 302,
        };
        let with = |change: fn(&mut Redirect)| {
            let mut redirect = plain.clone();
            change(&mut redirect);
            redirect
        };
        for (redirect, port, expected, reason) in [
            (
                with(|to| to.hostname = Some("b.example".into())),
                80,
                "http://b.example/a/x?q=1",
                "another host",
            ),
            (
                with(|to| to.hostname = Some("b.example".into())),
                8080,
                "http://b.example:8080/a/x?q=1",
                "the listener's port",
            ),
            (
                with(|to| to.scheme = Some("https".into())),
                8080,
                "https://a.example/a/x?q=1",
                "the scheme's own port",
            ),
            (
                with(|to| {
                    to.scheme = Some("https".into());
                    to.port = Some(8443);
                }),
                80,
                "https://a.example:8443/a/x?q=1",
                "the port given",
            ),
            (
                with(|to| to.port = Some(80)),
                8080,
                "http://a.example/a/x?q=1",
                "a port that goes without saying",
            ),
            (
                with(|to| to.path = Some(PathChange::Prefix("/b".into()))),
                80,
                "http://a.example/b/x?q=1",
                "another prefix",
            ),
        ] {
            let uri = Uri::from_static("/a/x?q=1");
            let from = From {
                scheme: "http",
                host: "a.example",
                port,
                uri: &uri,
            };
            let got = location(&redirect, &PathMatch::Prefix("/a".into()), &from);
            assert_eq!(got, expected, "{reason}");
        }
    }
}
