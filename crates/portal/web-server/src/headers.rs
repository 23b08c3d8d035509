//! What every answer tells a browser, so that no page of another site and no text of a tenant can act in the user's name.

use http::header::{CACHE_CONTROL, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// The application's page, with the nonce that stands in it.
    Page(&'a str),
    /// A file of the application.
    File,
    /// A page or an answer of sign-in.
    SignIn,
    /// What a part behind it said, which may be any text of any tenant.
    Behind,
}

/// Where things are, as policies name them.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    /// `https://portal.fairway.localhost:7443`.
    pub(crate) own: String,
    /// `https://id.fairway.localhost:7443`.
    pub(crate) sign_in: String,
}

/// Said by every answer.
const ALWAYS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "accelerometer=(), bluetooth=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), \
         microphone=(), midi=(), payment=(), serial=(), usb=(), clipboard-read=(self), clipboard-write=(self), fullscreen=(self)",
    ),
];
/// A year.
const STRICT_TRANSPORT: &str = "max-age=31536000";
/// What a part must not tell a browser: other cookies on this host, a form for passwords, rights of a worker.
const WITHHELD: [HeaderName; 5] = [
    SET_COOKIE,
    WWW_AUTHENTICATE,
    HeaderName::from_static("service-worker-allowed"),
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("strict-transport-security"),
];

/// The policy of an answer's content.
pub(crate) fn policy(kind: Kind<'_>, origins: &Origins) -> String {
    match kind {
        Kind::Page(nonce) => {
            let Origins { own, sign_in } = origins;
            // Some browsers do not take 'self' for WebSockets.
            let sockets = own.replacen("https://", "wss://", 1);
            format!(
                "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self' data:; \
                 connect-src 'self' {sockets}; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self' {sign_in}; \
                 frame-ancestors 'none'"
            )
        }
        // Its few pages have a style, and forms nowhere.
        Kind::SignIn => "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            .to_owned(),
        Kind::File => {
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'".to_owned()
        }
        // Opened as a page, it can do nothing, and is not even of this origin.
        Kind::Behind => {
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
                .to_owned()
        }
    }
}

/// Whether browsers may be told to insist on a good certificate: not for names that mean the machine itself, where people have
/// to be able to look at a certificate that nobody vouches for.
pub(crate) fn is_strict(own: &str) -> bool {
    let host = own.trim_start_matches("https://").split([':', '/']).next();
    !host.is_some_and(|host| host == "localhost" || host.ends_with(".localhost"))
}

/// Completes an answer.
pub(crate) fn complete(headers: &mut HeaderMap, status: StatusCode, kind: Kind<'_>, origins: &Origins) {
    if kind == Kind::Behind {
        for name in &WITHHELD {
            headers.remove(name);
        }
    }
    for (name, value) in ALWAYS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_strict(&origins.own) {
        headers.insert(
            "strict-transport-security",
            HeaderValue::from_static(STRICT_TRANSPORT),
        );
    }
    if matches!(kind, Kind::SignIn | Kind::Behind) && !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    // A browser that has the page has its policy, too; the nonce in it is the page's own.
    let is_kept = status == StatusCode::NOT_MODIFIED && matches!(kind, Kind::Page(_));
    if !is_kept && let Ok(policy) = HeaderValue::from_str(&policy(kind, origins)) {
        headers.insert("content-security-policy", policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(own: &str) -> Origins {
        Origins {
            own: own.to_owned(),
            sign_in: "https://id.example".to_owned(),
        }
    }

    #[test]
    fn policies_allow_what_the_answer_needs() {
        let origins = origins("https://portal.example:7443");
        for (kind, has, has_not) in [
            (
                Kind::Page("abc"),
                vec![
                    "default-src 'none'",
                    "script-src 'self';",
                    "'nonce-abc'",
                    "connect-src 'self' wss://portal.example:7443",
                    "form-action 'self' https://id.example",
                    "frame-ancestors 'none'",
                ],
                vec!["unsafe", "sandbox", "*"],
            ),
            (
                Kind::Behind,
                vec!["default-src 'none'", "sandbox", "frame-ancestors 'none'"],
                vec!["self", "unsafe"],
            ),
            (
                Kind::SignIn,
                vec![
                    "default-src 'none'",
                    "style-src 'self';",
                    "font-src 'self';",
                    "form-action 'none'",
                    "frame-ancestors 'none'",
                ],
                vec!["script", "unsafe", "*"],
            ),
        ] {
            let policy = policy(kind, &origins);
            for text in has {
                assert!(policy.contains(text), "{kind:?} lacks {text}: {policy}");
            }
            for text in has_not {
                assert!(!policy.contains(text), "{kind:?} has {text}: {policy}");
            }
        }
    }

    #[test]
    fn certificates_are_insisted_on_where_there_are_good_ones() {
        for (own, expected) in [
            ("https://portal.fairway.localhost:7443", false),
            ("https://localhost:1", false),
            ("https://portal.example.com", true),
            ("https://localhost.example.com", true),
        ] {
            assert_eq!(is_strict(own), expected, "{own}");
        }
    }

    #[test]
    fn a_part_sets_no_cookies_and_asks_for_no_password() {
        let mut headers = HeaderMap::new();
        headers.insert(SET_COOKIE, HeaderValue::from_static("a=b"));
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        complete(
            &mut headers,
            StatusCode::OK,
            Kind::Behind,
            &origins("https://p.localhost"),
        );
        assert!(!headers.contains_key(SET_COOKIE) && !headers.contains_key(WWW_AUTHENTICATE));
        assert_eq!(headers[CACHE_CONTROL], "no-cache, private");
        assert!(!headers.contains_key("strict-transport-security"));
        let mut headers = HeaderMap::new();
        complete(
            &mut headers,
            StatusCode::NOT_MODIFIED,
            Kind::Page("n"),
            &origins("https://p.example"),
        );
        assert!(
            !headers.contains_key("content-security-policy"),
            "the browser keeps the one that it has"
        );
        assert!(headers.contains_key("strict-transport-security"));
    }
}
