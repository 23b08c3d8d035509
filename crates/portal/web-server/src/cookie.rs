//! The two cookies: of a session, and of a sign-in that is under way.
//!
//! A sign-in is known by one random text that only the browser has. What the protocol needs (state, nonce, PKCE's verifier) is
//! derived from it, so that the server keeps nothing of sign-ins that nobody finishes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_portal_realm::{client, grant, secret};
use http::HeaderMap;
use http::header::COOKIE;
use ring::digest::{SHA256, digest};

/// Of a session.
pub(crate) const SESSION: &str = "__Host-fairway-session";
/// Of a sign-in that is under way.
pub(crate) const SIGN_IN: &str = "__Host-fairway-sign-in";
/// Seconds that somebody may take to sign in.
const PATIENCE: i64 = 1_800;

/// The value of a cookie. One that is there twice is none: somebody else has put it there.
pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut values = all
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

/// What a session's cookie says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Badge<'a> {
    /// The realm.
    pub(crate) realm: &'a str,
    /// The name of the session.
    pub(crate) name: &'a str,
    /// What shows that it is this browser's.
    pub(crate) secret: &'a str,
}

impl<'a> Badge<'a> {
    /// From a cookie.
    pub(crate) fn read(value: &'a str) -> Option<Self> {
        let (realm, rest) = value.split_once(':')?;
        let (name, secret) = grant::split(rest)?;
        client::is_name(realm).then_some(Self { realm, name, secret })
    }

    /// As a cookie's value.
    pub(crate) fn text(&self) -> String {
        format!("{}:{}", self.realm, grant::join(self.name, self.secret))
    }

    /// What requests must bring along that change something.
    pub(crate) fn csrf(&self) -> String {
        secret::digest(&format!("csrf:{}", self.secret))
    }
}

/// `Set-Cookie` of a session. It has no age: it goes with the browser, and the session has bounds of its own.
pub(crate) fn set_session(badge: &Badge<'_>) -> String {
    format!(
        "{SESSION}={}; Path=/; Secure; HttpOnly; SameSite=Lax",
        badge.text()
    )
}

/// `Set-Cookie` that takes a cookie away.
pub(crate) fn forget(name: &str) -> String {
    format!("{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax")
}

/// A sign-in under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignIn {
    secret: String,
    /// The realm.
    pub(crate) realm: String,
    /// Where the browser goes afterwards.
    pub(crate) return_path: String,
}

impl SignIn {
    /// A new one; the secret is random.
    pub(crate) fn new(secret: String, realm: &str, return_path: &str) -> Self {
        Self {
            secret,
            realm: realm.to_owned(),
            return_path: return_path.to_owned(),
        }
    }

    /// From a cookie.
    pub(crate) fn read(value: &str) -> Option<Self> {
        let mut parts = value.split('~');
        let (secret, realm, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = String::from_utf8(B64.decode(path).ok()?).ok()?;
        let is_whole = parts.next().is_none() && secret.len() == 43 && client::is_name(realm);
        is_whole.then(|| Self::new(secret.to_owned(), realm, crate::place::return_path(&path)))
    }

    /// `Set-Cookie`.
    pub(crate) fn set(&self) -> String {
        let path = B64.encode(&self.return_path);
        format!(
            "{SIGN_IN}={}~{}~{path}; Path=/; Max-Age={PATIENCE}; Secure; HttpOnly; SameSite=Lax",
            self.secret, self.realm
        )
    }

    fn derived(&self, what: &str) -> String {
        secret::digest(&format!("{what}:{}", self.secret))
    }

    /// `state`: comes back with the code.
    pub(crate) fn state(&self) -> String {
        self.derived("state")
    }

    /// `nonce`: comes back with the session.
    pub(crate) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// `code_verifier` of PKCE.
    pub(crate) fn verifier(&self) -> String {
        self.derived("verifier")
    }

    /// `code_challenge` of PKCE.
    pub(crate) fn challenge(&self) -> String {
        B64.encode(digest(&SHA256, self.verifier().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_is_read_as_it_was_written() {
        let name = format!("s{}", "0a".repeat(16));
        let badge = Badge {
            realm: "acme",
            name: &name,
            secret: "secret",
        };
        let text = badge.text();
        assert_eq!(Badge::read(&text), Some(badge));
        for wrong in [
            "",
            "acme",
            "acme:x~y",
            ":s~x",
            &text.replace(':', "~"),
            &text.replace("acme", "../x"),
        ] {
            assert_eq!(Badge::read(wrong), None, "{wrong}");
        }
        assert_ne!(badge.csrf(), "secret");
        assert_ne!(
            badge.csrf(),
            secret::digest("secret"),
            "what is kept of the secret is no token"
        );
        let set = set_session(&badge);
        for attribute in ["__Host-", "; Path=/;", "; Secure", "; HttpOnly", "; SameSite=Lax"] {
            assert!(set.contains(attribute), "{set}");
        }
        assert!(!set.contains("Domain"));
    }

    #[test]
    fn a_sign_in_is_the_browsers_own() {
        let sign_in = SignIn::new("s".repeat(43), "acme", "/machines?a=b");
        let cookie = sign_in.set();
        let value = cookie.split(';').next().unwrap().split_once('=').unwrap().1;
        assert_eq!(SignIn::read(value), Some(sign_in.clone()));
        assert!(grant::is_verified(&sign_in.challenge(), &sign_in.verifier()));
        let derived = [sign_in.state(), sign_in.nonce(), sign_in.verifier()];
        assert!(
            derived
                .iter()
                .all(|it| it.len() == 43 && !it.contains(&"s".repeat(43)))
        );
        assert!(derived[0] != derived[1] && derived[1] != derived[2]);
        // A cookie that somebody wrote leads nowhere else.
        let foreign = SignIn::new("s".repeat(43), "acme", "//evil.example").set();
        let value = foreign.split(';').next().unwrap().split_once('=').unwrap().1;
        assert_eq!(SignIn::read(value).unwrap().return_path, "/");
        for wrong in [
            "",
            "a~b",
            "short~acme~Lw",
            &format!("{}~acme~Lw~x", "s".repeat(43)),
        ] {
            assert_eq!(SignIn::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; x__Host-fairway-session=2".parse().unwrap());
        headers.append(COOKIE, "__Host-fairway-session=3;b=4".parse().unwrap());
        assert_eq!(find(&headers, SESSION), Some("3"));
        assert_eq!(find(&headers, "b"), Some("4"));
        assert_eq!(find(&headers, "c"), None);
        headers.append(COOKIE, "__Host-fairway-session=5".parse().unwrap());
        assert_eq!(find(&headers, SESSION), None, "two are none");
    }
}
