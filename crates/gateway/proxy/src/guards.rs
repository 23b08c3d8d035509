//! Which rules are guarded, and asking a guard so that nothing it does can let a request through by accident.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Guard, Judgement, Refusal, Step, Verdict};
use fairway_gateway_routes::table::RuleKey;
use futures::FutureExt;
use http::{HeaderMap, HeaderName, StatusCode};

/// The policies of a table, by rule. A rule that is not named here has none and is open.
#[derive(Clone, Default)]
pub struct Guards {
    by_rule: Arc<HashMap<RuleKey, Protection>>,
}

/// How one rule is protected.
#[derive(Clone)]
pub(crate) enum Protection {
    Guarded(Arc<dyn Guard>),
    /// There should be a guard, and there is none: every request is refused. The text says why.
    Missing(Arc<str>),
}

impl Guards {
    pub fn insert(&mut self, rule: RuleKey, guard: Arc<dyn Guard>) {
        Arc::make_mut(&mut self.by_rule).insert(rule, Protection::Guarded(guard));
    }

    /// A policy is meant for `rule` and cannot be enforced: its requests are answered with 500 until it can.
    pub fn insert_missing(&mut self, rule: RuleKey, why: impl Into<Arc<str>>) {
        Arc::make_mut(&mut self.by_rule).insert(rule, Protection::Missing(why.into()));
    }

    pub fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    pub(crate) fn of(&self, rule: &RuleKey) -> Option<Protection> {
        self.by_rule.get(rule).cloned()
    }

    /// What is asked of those who come to a rule, as a number.
    pub(crate) fn print(&self, rule: &RuleKey) -> u64 {
        print(self.by_rule.get(rule))
    }
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guards")
            .field("rules", &self.by_rule.len())
            .finish()
    }
}

/// Zero where nothing is asked. A guard that fails at telling asks for something that nobody has.
pub(crate) fn print(protection: Option<&Protection>) -> u64 {
    match protection {
        None => 0,
        Some(Protection::Missing(_)) => u64::MAX,
        Some(Protection::Guarded(guard)) => {
            std::panic::catch_unwind(AssertUnwindSafe(|| guard.print())).unwrap_or(u64::MAX)
        }
    }
}

/// Whether it is the very same guard, or the same reason for there being none.
pub(crate) fn are_same(one: Option<&Protection>, other: Option<&Protection>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(Protection::Guarded(one)), Some(Protection::Guarded(other))) => Arc::ptr_eq(one, other),
        (Some(Protection::Missing(one)), Some(Protection::Missing(other))) => one == other,
        _ => false,
    }
}

/// Who is named when it is the proxy that refuses for want of a guard.
pub(crate) const FAILED: &str = "fairway/guard-failed";
const MISSING: &str = "fairway/guard-missing";

pub(crate) async fn judge(protection: &Protection, asked: &Asked<'_>) -> Verdict {
    let guard = match protection {
        Protection::Guarded(guard) => guard,
        Protection::Missing(why) => return Verdict::Deny(closed(MISSING, why)),
    };
    // A guard must not panic. If one does, the request is refused and the worker lives on.
    match std::panic::catch_unwind(AssertUnwindSafe(|| guard.judge(asked))) {
        Ok(Judgement::Now(verdict)) => verdict,
        Ok(Judgement::Later(wait)) => match AssertUnwindSafe(wait).catch_unwind().await {
            Ok(verdict) => verdict,
            Err(_) => panicked(),
        },
        Err(_) => panicked(),
    }
}

pub(crate) async fn explain(protection: &Protection, asked: &Asked<'_>) -> (Verdict, Vec<Step>) {
    let guard = match protection {
        Protection::Guarded(guard) => guard,
        Protection::Missing(why) => return (Verdict::Deny(closed(MISSING, why)), Vec::new()),
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| guard.explain(asked))) {
        Ok(wait) => match AssertUnwindSafe(wait).catch_unwind().await {
            Ok(explained) => explained,
            Err(_) => (panicked(), Vec::new()),
        },
        Err(_) => (panicked(), Vec::new()),
    }
}

/// Takes away what the client says in the guard's name, also as `X_User` for `X-User`, which are one to servers that make
/// variables of headers.
pub(crate) fn withhold(headers: &mut HeaderMap, names: &[HeaderName]) {
    let forged = |sent: &&HeaderName| names.iter().any(|name| are_alike(sent, name));
    let forged: Vec<HeaderName> = headers.keys().filter(forged).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
}

fn are_alike(one: &HeaderName, other: &HeaderName) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let (one, other) = (one.as_str().bytes().map(plain), other.as_str().bytes().map(plain));
    one.eq(other)
}

fn panicked() -> Verdict {
    Verdict::Deny(closed(
        FAILED,
        "the policy's code panicked; its report is in the server's log",
    ))
}

fn closed(by: &'static str, why: &str) -> Refusal {
    Refusal {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        headers: Vec::new(),
        body: Bytes::new(),
        by: Cow::Borrowed(by),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use fairway_gateway_guard::Passage;
    use futures::future::BoxFuture;
    use http::{Method, Uri, Version};

    use super::*;

    struct Scripted(fn() -> Judgement<'static>);

    impl Guard for Scripted {
        fn judge<'a>(&'a self, _: &'a Asked<'a>) -> Judgement<'a> {
            (self.0)()
        }

        fn explain<'a>(&'a self, _: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
            Box::pin(async { panic!("explaining fails") })
        }
    }

    #[tokio::test]
    async fn what_fails_is_refused() {
        let uri = Uri::from_static("/");
        let headers = HeaderMap::new();
        let asked = Asked {
            method: &Method::GET,
            uri: &uri,
            host: "a",
            scheme: "http",
            version: Version::HTTP_11,
            headers: &headers,
            client: [127, 0, 0, 1].into(),
            client_port: 1,
            door: ([192, 0, 2, 1], 443).into(),
            id: "",
            now: 0,
            probe: false,
        };
        let allow = || Verdict::Allow(Passage::default());
        let guarded = |script| Protection::Guarded(Arc::new(Scripted(script)) as Arc<dyn Guard>);
        for (protection, expected, reason) in [
            (
                guarded(|| Judgement::Now(Verdict::Allow(Passage::default()))),
                None,
                "it says yes",
            ),
            (guarded(|| panic!("at once")), Some(FAILED), "a panic is a no"),
            (
                guarded(|| Judgement::Later(Box::pin(async { panic!("later") }))),
                Some(FAILED),
                "also after a wait",
            ),
            (
                Protection::Missing("no key server".into()),
                Some(MISSING),
                "no guard is a no",
            ),
        ] {
            let verdict = judge(&protection, &asked).await;
            match expected {
                None => assert_eq!(verdict, allow(), "{reason}"),
                Some(by) => match verdict {
                    Verdict::Deny(refusal) => {
                        assert_eq!((refusal.status.as_u16(), &*refusal.by), (500, by), "{reason}");
                    }
                    Verdict::Allow(_) => panic!("let through: {reason}"),
                },
            }
        }
        let (verdict, _) = explain(&guarded(|| panic!("unused")), &asked).await;
        assert!(
            matches!(verdict, Verdict::Deny(_)),
            "explaining fails closed, too"
        );
    }
}
