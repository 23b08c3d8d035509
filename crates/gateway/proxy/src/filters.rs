//! What filters do to requests and answers: functions of their heads.

pub(crate) mod cors;
mod location;

use fairway_gateway_routes::table::{Filter, HeaderChanges, PathChange, PathMatch};
use http::header::HOST;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri};

pub(crate) use location::{From, redirect};

/// First set, then add, then remove. The length and whatever else frames a message is not theirs to change.
pub(crate) fn change(changes: &HeaderChanges, headers: &mut HeaderMap) {
    for (name, value) in &changes.set {
        if !frames(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in &changes.add {
        if !frames(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    for name in &changes.remove {
        if !frames(name) {
            headers.remove(name);
        }
    }
}

fn frames(name: &http::HeaderName) -> bool {
    use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
    *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING || *name == CONNECTION || *name == UPGRADE
}

/// Changes to a request's head, in the order of the filters. Redirections, mirrors and CORS are not among them.
pub(crate) fn on_request(filters: &[Filter], matched: &PathMatch, parts: &mut Parts) {
    for filter in filters {
        match filter {
            Filter::RequestHeaders(changes) => change(changes, &mut parts.headers),
            Filter::Rewrite { hostname, path } => {
                if let Some(value) = hostname
                    .as_ref()
                    .and_then(|name| HeaderValue::from_str(name).ok())
                {
                    parts.headers.insert(HOST, value);
                }
                if let Some(uri) = path
                    .as_ref()
                    .and_then(|path| rewritten(path, matched, &parts.uri))
                {
                    parts.uri = uri;
                }
            }
            Filter::ResponseHeaders(_) | Filter::Redirect(_) | Filter::Mirror(_) | Filter::Cors(_) => {}
        }
    }
}

pub(crate) fn on_response(filters: &[Filter], headers: &mut HeaderMap) {
    for filter in filters {
        if let Filter::ResponseHeaders(changes) = filter {
            change(changes, headers);
        }
    }
}

/// The path after a change; the query stays.
fn rewritten(change: &PathChange, matched: &PathMatch, uri: &Uri) -> Option<Uri> {
    let path = changed_path(change, matched, uri.path());
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

fn changed_path(change: &PathChange, matched: &PathMatch, path: &str) -> String {
    match change {
        PathChange::Full(full) => rooted(full),
        PathChange::Prefix(new) => {
            let prefix = match matched {
                PathMatch::Prefix(prefix) => prefix.trim_end_matches('/'),
                PathMatch::Exact(_) | PathMatch::Regex(_) => "",
            };
            let rest = path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/');
            let new = new.trim_end_matches('/');
            // Between the two there is one slash; a bare prefix stays without one.
            if rest.is_empty() && !path[prefix.len().min(path.len())..].starts_with('/') {
                rooted(new)
            } else {
                rooted(&format!("{new}/{rest}"))
            }
        }
    }
}

fn rooted(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_rewritten() {
        for (matched, change, path, expected, reason) in [
            (
                "/a",
                PathChange::Prefix("/b".into()),
                "/a/x?q=1",
                "/b/x?q=1",
                "a prefix for a prefix",
            ),
            (
                "/a",
                PathChange::Prefix("/b/".into()),
                "/a/x",
                "/b/x",
                "slashes at the end make no difference",
            ),
            (
                "/a",
                PathChange::Prefix("/".into()),
                "/a/x",
                "/x",
                "the prefix goes",
            ),
            (
                "/a",
                PathChange::Prefix("/".into()),
                "/a",
                "/",
                "and the root remains",
            ),
            (
                "/a",
                PathChange::Prefix("/b".into()),
                "/a",
                "/b",
                "nothing behind the prefix",
            ),
            (
                "/a",
                PathChange::Prefix("/b".into()),
                "/a/",
                "/b/",
                "a slash behind it",
            ),
            (
                "",
                PathChange::Prefix("/b".into()),
                "/x",
                "/b/x",
                "in front of everything",
            ),
            (
                "/a",
                PathChange::Full("/c".into()),
                "/a/x?q",
                "/c?q",
                "the whole path",
            ),
        ] {
            let matched = PathMatch::Prefix(matched.into());
            let uri = rewritten(&change, &matched, &path.parse().unwrap()).unwrap();
            assert_eq!(uri.to_string(), expected, "{reason}");
        }
    }

    #[test]
    fn headers_are_set_added_removed() {
        let pair = |name: &str, value: &str| {
            (
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            )
        };
        let changes = HeaderChanges {
            set: vec![pair("a", "2"), pair("content-length", "9")],
            add: vec![pair("b", "2")],
            remove: vec!["c".parse().unwrap(), "transfer-encoding".parse().unwrap()],
        };
        let mut headers: HeaderMap = [
            pair("a", "1"),
            pair("b", "1"),
            pair("c", "1"),
            pair("content-length", "3"),
        ]
        .into_iter()
        .collect();
        change(&changes, &mut headers);
        assert_eq!(headers["a"], "2");
        assert_eq!(headers.get_all("b").iter().count(), 2);
        assert!(!headers.contains_key("c"));
        assert_eq!(headers["content-length"], "3", "framing is not a filter's");
    }
}
