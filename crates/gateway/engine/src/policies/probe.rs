//! Whether a policy does what it promises: the data plane is asked about a request that must be refused.
//!
//! Where the request of a rule cannot be made up from its match (a regular expression), or belongs to another rule before it, the
//! guard that the data plane was given is asked itself, and the policy's condition says so. A policy that lets strangers in, or
//! does not always apply, promises no refusal that could be known beforehand: its guard is asked first, and what it refuses, the
//! data plane has to refuse, too. If it refuses nothing, there is nothing to try, which the condition says as well.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fairway_gateway_gatekeeper::{PROBE, RuleGuard};
use fairway_gateway_guard::{Asked, Guard, Judgement, Verdict};
use fairway_gateway_policy::object::Kind;
use fairway_gateway_routes::table::{HostPattern, PathMatch, ValueMatch};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use tokio::time::timeout;

use super::decide::Way;
use crate::plane::{DataPlane, Probe};

/// How long a guard may take to say whether it has something to refuse: less than a whole probe, so that this is told.
const GUARD: Duration = Duration::from_millis(200);
/// Stands for any name below a wildcard.
const ANY_HOST: &str = "fairway-probe";

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probed {
    /// The data plane refuses what it has to.
    Refused,
    /// The guard does; the data plane could not be asked about this rule.
    ByGuard,
    /// It was let through, and must not be.
    Passed,
    /// The guard itself lets the request through, so no refusal could be seen.
    NothingToRefuse,
    /// Whether there is something to refuse, the guard could not say in time.
    Silent,
}

/// What a policy promises of a request without credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    Refusal,
    /// That depends on the request, and on whom the policy asks.
    Depends,
}

/// Whether a rule refuses what a policy of this kind promises to refuse.
pub(super) async fn probed(
    plane: &dyn DataPlane,
    way: &Way,
    guard: &RuleGuard,
    kind: Kind,
    promise: Promise,
) -> Probed {
    let request = request(way, kind);
    let fallback = || Probe {
        method: Method::GET,
        uri: Uri::from_static("http://fairway-probe/"),
        headers: marked(kind),
        client: None,
    };
    if promise == Promise::Depends {
        let synthetic = request.clone().unwrap_or_else(fallback);
        match timeout(GUARD, judged(guard, &synthetic)).await {
            Ok(true) => {}
            Ok(false) => return Probed::NothingToRefuse,
            Err(_) => return Probed::Silent,
        }
    }
    if let Some(request) = &request
        && let Some((rule, refused)) = plane.probe(&way.rule.listener, request.clone()).await
        && rule == way.rule
    {
        return match refused {
            true => Probed::Refused,
            false => Probed::Passed,
        };
    }
    match judged(guard, &request.unwrap_or_else(fallback)).await {
        true => Probed::ByGuard,
        false => Probed::Passed,
    }
}

async fn judged(guard: &RuleGuard, request: &Probe) -> bool {
    let asked = Asked {
        method: &request.method,
        uri: &request.uri,
        host: request.uri.host().unwrap_or(ANY_HOST),
        scheme: request.uri.scheme_str().unwrap_or("http"),
        version: Version::HTTP_11,
        headers: &request.headers,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        client_port: 0,
        door: ([192, 0, 2, 1], 443).into(),
        id: ANY_HOST,
        now: u128::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default(),
        probe: true,
    };
    let verdict = match guard.judge(&asked) {
        Judgement::Now(verdict) => verdict,
        Judgement::Later(verdict) => verdict.await,
    };
    matches!(verdict, Verdict::Deny(_))
}

fn marked(kind: Kind) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        HeaderName::from_static(PROBE),
        HeaderValue::from_static(kind.as_str()),
    );
    headers
}

/// A request that the rule's match fits; none if that cannot be told from the match.
fn request(way: &Way, kind: Kind) -> Option<Probe> {
    let host = match &way.host {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Wildcard(suffix) => format!("{ANY_HOST}.{suffix}"),
        HostPattern::Any => ANY_HOST.to_owned(),
    };
    let matches = &way.entry.matches;
    let path = match &matches.path {
        PathMatch::Exact(path) | PathMatch::Prefix(path) => path,
        PathMatch::Regex(_) => return None,
    };
    let mut headers = marked(kind);
    for header in &matches.headers {
        let ValueMatch::Exact(value) = &header.value else {
            return None;
        };
        headers.insert(header.name.clone(), HeaderValue::from_str(value).ok()?);
    }
    let mut query = form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
    for parameter in &matches.query {
        let ValueMatch::Exact(value) = &parameter.value else {
            return None;
        };
        query.append_pair(&parameter.name, value);
    }
    let query = match matches.query.is_empty() {
        true => String::new(),
        false => query.finish(),
    };
    let scheme = if way.is_secure { "https" } else { "http" };
    Some(Probe {
        method: matches.method.clone().unwrap_or(Method::GET),
        uri: format!("{scheme}://{host}{path}{query}").parse().ok()?,
        headers,
        client: None,
    })
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::Kind as Route;
    use serde_json::{Value, json};

    use super::super::decide::{tests::built, ways};
    use super::*;

    #[test]
    fn requests_are_made_up_from_what_a_rule_matches() {
        let exact = |name: &str, value: &str| json!([{"name": name, "value": value}]);
        let regex = json!([{"name": "a", "type": "RegularExpression", "value": "b+"}]);
        for (matches, expected) in [
            (json!({}), Some("http://fairway-probe/ []")),
            (
                json!({"path": {"value": "/a"}, "method": "PUT"}),
                Some("http://fairway-probe/a []"),
            ),
            (
                json!({"queryParams": exact("a", "b")}),
                Some("http://fairway-probe/?a=b []"),
            ),
            (
                json!({"path": {"value": "/x"}, "queryParams": exact("a b", "1&2=ä")}),
                Some("http://fairway-probe/x?a+b=1%262%3D%C3%A4 []"),
            ),
            (
                json!({"headers": exact("x-a", "b")}),
                Some("http://fairway-probe/ [x-a: b]"),
            ),
            (json!({"queryParams": regex}), None),
            (json!({"headers": regex}), None),
            (
                json!({"path": {"type": "RegularExpression", "value": "/a+"}}),
                None,
            ),
        ] {
            let rules: Value =
                json!([{"matches": [matches], "backendRefs": [{"name": "backend", "port": 8080}]}]);
            let (_, table) = built(Route::HttpRoute, &rules);
            let (_, way) = ways(&table).pop_first().unwrap();
            let found = request(&way, Kind::AuthPolicy).map(|it| {
                let own = it.headers.iter().filter(|(name, _)| *name != PROBE);
                let own: Vec<String> = own
                    .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                    .collect();
                format!("{} [{}]", it.uri, own.join(" "))
            });
            assert_eq!(found.as_deref(), expected, "{matches}");
        }
    }
}
