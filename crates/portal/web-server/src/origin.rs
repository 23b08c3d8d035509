//! Whether a request with the session's cookie came from the application itself.
//!
//! Browsers send the cookie along with requests that other pages cause, also pages on sister hosts, which anybody with a Route may
//! have. A request that changes something must bring the session's token, which no other page can read; one that only reads must not
//! say that another page caused it; a WebSocket, whose answers another page could read, must come from this very origin.

use fairway_portal_realm::secret;
use http::{HeaderMap, Method};

/// The header with the session's token.
pub(crate) const CSRF: &str = "x-fairway-csrf";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The token is missing or another's.
    Token,
    /// Another page caused it.
    Origin,
    /// It is loaded as a part of a page.
    Destination,
}

impl Refusal {
    /// For whoever reads the answer.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Token => {
                "the request changes something and does not carry the session's token: send csrf of /auth/session in X-Fairway-CSRF"
            }
            Self::Origin => "the request was caused by a page of another origin",
            Self::Destination => "APIs are not loaded as scripts, styles or frames",
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // What cannot be read is there, and is not what was expected.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Judges a request with a cookie. `own` is the portal's origin, `token` the session's.
pub(crate) fn judge(method: &Method, headers: &HeaderMap, own: &str, token: &str) -> Result<(), Refusal> {
    let origin = text(headers, "origin");
    let site = text(headers, "sec-fetch-site");
    let is_upgrade = headers.contains_key(http::header::UPGRADE);
    let is_reading = matches!(*method, Method::GET | Method::HEAD);
    // `none`: the user himself, by a bookmark or the address bar; no page can claim that.
    let is_own_site = site.is_none_or(|site| site == "same-origin" || (site == "none" && !is_upgrade));
    let is_own_origin = match origin {
        Some(origin) => origin == own,
        // Every browser says where a WebSocket comes from.
        None => !is_upgrade,
    };
    if !is_own_site || !is_own_origin {
        return Err(Refusal::Origin);
    }
    let destination = text(headers, "sec-fetch-dest").unwrap_or("empty");
    if !matches!(destination, "empty" | "websocket" | "document" | "image") {
        return Err(Refusal::Destination);
    }
    let brings = text(headers, CSRF).is_some_and(|it| secret::is_equal(it.as_bytes(), token.as_bytes()));
    match is_reading || brings {
        true => Ok(()),
        false => Err(Refusal::Token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_application_acts_with_the_cookie() {
        use Refusal::{Destination, Origin, Token};
        const OWN: &str = "https://portal.example";
        let own = ("origin", OWN);
        let token = (CSRF, "t");
        let socket = ("upgrade", "websocket");
        for (method, headers, expected, why) in [
            (Method::GET, vec![], Ok(()), "a client without a browser"),
            (
                Method::GET,
                vec![("sec-fetch-site", "same-origin")],
                Ok(()),
                "the application reads",
            ),
            (
                Method::GET,
                vec![("sec-fetch-site", "none")],
                Ok(()),
                "the address bar",
            ),
            (
                Method::GET,
                vec![("sec-fetch-site", "cross-site")],
                Err(Origin),
                "an image on another site",
            ),
            (
                Method::GET,
                vec![("sec-fetch-site", "same-site")],
                Err(Origin),
                "a tenant's page on a sister host",
            ),
            (
                Method::GET,
                vec![("origin", "https://evil.example")],
                Err(Origin),
                "a fetch from elsewhere",
            ),
            (
                Method::GET,
                vec![("origin", "null")],
                Err(Origin),
                "a sandboxed page",
            ),
            (
                Method::GET,
                vec![("sec-fetch-dest", "script")],
                Err(Destination),
                "a raw file as a script",
            ),
            (
                Method::GET,
                vec![("sec-fetch-dest", "iframe")],
                Err(Destination),
                "a frame",
            ),
            (
                Method::GET,
                vec![("sec-fetch-dest", "serviceworker")],
                Err(Destination),
                "a worker",
            ),
            (
                Method::GET,
                vec![("sec-fetch-dest", "image")],
                Ok(()),
                "a picture in a repository",
            ),
            (Method::POST, vec![own, token], Ok(()), "the application writes"),
            (Method::POST, vec![token], Ok(()), "without an origin"),
            (
                Method::POST,
                vec![own],
                Err(Token),
                "a form of the application's origin without the token",
            ),
            (
                Method::POST,
                vec![own, (CSRF, "x")],
                Err(Token),
                "another session's token",
            ),
            (Method::POST, vec![own, (CSRF, "")], Err(Token), "an empty token"),
            (
                Method::POST,
                vec![("origin", "https://evil.example"), token],
                Err(Origin),
                "another origin",
            ),
            (
                Method::POST,
                vec![("origin", "https://portal.example.evil"), token],
                Err(Origin),
                "alike",
            ),
            (
                Method::POST,
                vec![("origin", "https://portal.example:444"), token],
                Err(Origin),
                "another port",
            ),
            (
                Method::POST,
                vec![("origin", "http://portal.example"), token],
                Err(Origin),
                "another scheme",
            ),
            (
                Method::DELETE,
                vec![own],
                Err(Token),
                "any method that is not reading",
            ),
            (
                Method::from_bytes(b"ODD").unwrap(),
                vec![own],
                Err(Token),
                "also one that nobody knows",
            ),
            (Method::GET, vec![socket, own], Ok(()), "a console"),
            (
                Method::GET,
                vec![socket, own, ("sec-fetch-site", "same-origin")],
                Ok(()),
                "a console",
            ),
            (
                Method::GET,
                vec![socket],
                Err(Origin),
                "a WebSocket that hides where it comes from",
            ),
            (
                Method::GET,
                vec![socket, ("origin", "https://evil.example")],
                Err(Origin),
                "another page's",
            ),
            (
                Method::GET,
                vec![socket, own, ("sec-fetch-site", "same-site")],
                Err(Origin),
                "it contradicts itself",
            ),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(name, value.parse().unwrap());
            }
            assert_eq!(judge(&method, &map, OWN, "t"), expected, "{why}");
        }
    }
}
