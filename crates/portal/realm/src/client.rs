//! Programs that people sign in to, and where a browser may be sent with a code.
//!
//! An address must be registered letter by letter. The one exception is RFC 8252's: a program on the user's own machine listens on
//! a port that it cannot know before, so the port of a registered loopback address may differ.

use serde_json::Value;

/// The client of the command line, which every realm has.
pub const COMMAND_LINE: &str = "fairway";
/// The client of the portal, which every realm has. It has no secret: the portal is in the provider's own process, and whoever
/// comes from outside cannot be it.
pub const PORTAL: &str = "portal";
/// Where the portal is sent codes, below its address.
pub const PORTAL_CALLBACK: &str = "/auth/callback";

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// `client_id`: the name of its object.
    pub id: String,
    /// For people.
    pub display_name: String,
    /// Whether it can keep no secret.
    pub public: bool,
    /// Where a browser may be sent with a code.
    pub redirect_uris: Vec<String>,
    /// Where it may be sent after a session has ended.
    pub post_logout_redirect_uris: Vec<String>,
    /// Whether its tokens are good for the API.
    pub api_access: bool,
    /// Whether people may confirm on another device.
    pub device_flow: bool,
}

impl Client {
    /// Whether a name is that of a client which every realm has without an object.
    pub fn is_built_in(id: &str) -> bool {
        matches!(id, COMMAND_LINE | PORTAL)
    }

    /// A client that every realm has without an object. `portal` is the address of the portal, such as
    /// `https://portal.fairway.localhost:7443`.
    pub fn built_in(id: &str, portal: &str) -> Option<Self> {
        if id == PORTAL {
            return Some(Self {
                id: id.to_owned(),
                display_name: "the Fairway portal".to_owned(),
                public: false,
                redirect_uris: vec![format!("{portal}{PORTAL_CALLBACK}")],
                post_logout_redirect_uris: vec![format!("{portal}/")],
                api_access: true,
                device_flow: false,
            });
        }
        (id == COMMAND_LINE).then(|| Self {
            id: id.to_owned(),
            display_name: "Fairway on the command line".to_owned(),
            public: true,
            redirect_uris: vec![
                "http://127.0.0.1/callback".to_owned(),
                "http://[::1]/callback".to_owned(),
            ],
            post_logout_redirect_uris: Vec::new(),
            api_access: true,
            device_flow: true,
        })
    }

    /// From its object.
    pub fn read(id: &str, object: &Value) -> Self {
        let spec = &object["spec"];
        let list = |field: &str| {
            let items = spec[field].as_array().map(Vec::as_slice).unwrap_or_default();
            items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let name = spec["displayName"].as_str().filter(|name| !name.is_empty());
        Self {
            id: id.to_owned(),
            display_name: name.unwrap_or(id).to_owned(),
            public: spec["public"] == true,
            redirect_uris: list("redirectURIs"),
            post_logout_redirect_uris: list("postLogoutRedirectURIs"),
            api_access: spec["apiAccess"] == true,
            device_flow: spec["deviceFlow"] == true,
        }
    }

    /// Whether a browser may be sent there with a code.
    pub fn may_redirect_to(&self, uri: &str) -> bool {
        is_sound(uri) && self.redirect_uris.iter().any(|known| is_same(known, uri))
    }

    /// Whether pages of an origin, as a browser names it, are where codes are sent. The port counts: what else listens on the same machine
    /// is somebody else.
    pub fn has_pages_at(&self, asked: &str) -> bool {
        let is_web = asked.starts_with("https://") || asked.starts_with("http://");
        is_web
            && self
                .redirect_uris
                .iter()
                .filter_map(|uri| origin(uri))
                .any(|known| plain(&known) == plain(asked))
    }

    /// Whether a browser may be sent there after a session has ended.
    pub fn may_end_at(&self, uri: &str) -> bool {
        is_sound(uri)
            && self
                .post_logout_redirect_uris
                .iter()
                .any(|known| is_same(known, uri))
    }
}

/// Whether a name may be that of an object, before anybody asks for it.
pub fn is_name(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !name.is_empty()
        && name.len() <= 253
        && name
            .split('.')
            .all(|part| part.bytes().all(|b| is_letter(b) || b == b'-') && !part.is_empty())
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().last().is_some_and(is_letter)
}

/// An address that can stand in a header, with a scheme, and that names no script and no part of a page.
fn is_sound(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default().to_ascii_lowercase();
    uri.len() <= 2048
        && uri.bytes().all(|b| b.is_ascii_graphic())
        && uri.contains(':')
        && !uri.contains('#')
        && !uri.contains('\\')
        && !matches!(
            scheme.as_str(),
            "javascript" | "data" | "vbscript" | "file" | "blob" | "about"
        )
}

fn is_same(known: &str, uri: &str) -> bool {
    if known == uri {
        return true;
    }
    ["http://127.0.0.1", "http://[::1]"].iter().any(|host| {
        let rest = |text: &str| text.strip_prefix(host).and_then(without_port).map(str::to_owned);
        rest(known).is_some_and(|known| rest(uri) == Some(known))
    })
}

/// What follows the port of an address, which may have none.
fn without_port(rest: &str) -> Option<&str> {
    let Some(port) = rest.strip_prefix(':') else {
        return rest
            .starts_with('/')
            .then_some(rest)
            .or(rest.is_empty().then_some(rest));
    };
    let end = port.find(|c: char| !c.is_ascii_digit()).unwrap_or(port.len());
    let (port, rest) = port.split_at(end);
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_port && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
}

/// What a policy of a page calls the place that an address leads to: `https://host:port`, or the scheme of an app.
pub fn origin(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let is_scheme = scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !is_scheme || scheme.is_empty() {
        return None;
    }
    if !matches!(scheme, "http" | "https") {
        return Some(format!("{scheme}:"));
    }
    let host = rest.strip_prefix("//")?.split(['/', '?', '#']).next()?;
    let is_host = host
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    (is_host && !host.is_empty()).then(|| format!("{scheme}://{host}"))
}

/// An origin in the one form that it can have: in lower case, without the port that it has anyway.
fn plain(origin: &str) -> String {
    let lower = origin.to_ascii_lowercase();
    let usual = match lower.starts_with("https:") {
        true => ":443",
        false => ":80",
    };
    lower.strip_suffix(usual).unwrap_or(&lower).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_where_codes_are_sent() {
        let client = Client::read(
            "spa",
            &json!({"spec": {"public": true, "redirectURIs": [
                "https://App.example/cb", "https://other.example:8443/cb", "http://localhost:5173/cb", "com.example.app:/cb",
            ]}}),
        );
        for (origin, expected) in [
            ("https://app.example", true),
            ("https://app.example:443", true),
            ("https://other.example:8443", true),
            ("http://localhost:5173", true),
            ("https://other.example", false),
            ("http://app.example", false),
            ("https://app.example.evil", false),
            ("https://evil.app.example", false),
            ("http://localhost:5174", false),
            ("com.example.app:", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(client.has_pages_at(origin), expected, "{origin:?}");
        }
    }

    #[test]
    fn a_browser_goes_nowhere_else() {
        let client = Client::read(
            "web",
            &json!({"spec": {"redirectURIs": [
                "https://app.example/cb", "https://app.example/cb?x=1", "http://127.0.0.1/cb", "http://[::1]:5/cb",
                "com.example.app:/cb", "javascript:alert(1)", "https://app.example/#x",
            ]}}),
        );
        for (uri, expected) in [
            ("https://app.example/cb", true),
            ("https://app.example/cb?x=1", true),
            ("com.example.app:/cb", true),
            ("http://127.0.0.1/cb", true),
            ("http://127.0.0.1:1/cb", true),
            ("http://127.0.0.1:65535/cb", true),
            ("http://[::1]/cb", true),
            ("http://[::1]:8080/cb", true),
            // Anything else is another place, however alike it looks.
            ("https://app.example/cb/", false),
            ("https://app.example/cb?x=1&y", false),
            ("https://app.example/cb/../evil", false),
            ("https://app.example:443/cb", false),
            ("https://APP.example/cb", false),
            ("https://app.example.evil/cb", false),
            ("https://app.example@evil/cb", false),
            ("http://app.example/cb", false),
            ("//app.example/cb", false),
            ("https:app.example/cb", false),
            ("https://app.example\\@evil/cb", false),
            ("http://127.0.0.1:1@evil/cb", false),
            ("http://127.0.0.1:1evil/cb", false),
            ("http://127.0.0.1.evil/cb", false),
            ("http://127.0.0.1:0/cb", false),
            ("http://127.0.0.1:65536/cb", false),
            ("http://127.0.0.1:/cb", false),
            ("http://127.0.0.1:1/cb/", false),
            ("http://127.0.0.2:1/cb", false),
            ("http://localhost:1/cb", false),
            ("https://127.0.0.1:1/cb", false),
            ("javascript:alert(1)", false),
            ("https://app.example/#x", false),
            ("https://app.example/cb\r\nset-cookie: x", false),
            ("", false),
        ] {
            assert_eq!(client.may_redirect_to(uri), expected, "{uri:?}");
        }
        assert!(!client.may_end_at("https://app.example/cb"));
    }

    #[test]
    fn the_portal_is_sent_to_itself_alone() {
        let portal = Client::built_in(PORTAL, "https://portal.example:1").unwrap();
        assert!(!portal.public && portal.api_access && !portal.device_flow);
        for (uri, expected) in [
            ("https://portal.example:1/auth/callback", true),
            ("https://portal.example:1/auth/callback/", false),
            ("https://portal.example:2/auth/callback", false),
            ("https://portal.example/auth/callback", false),
            ("https://evil.example/auth/callback", false),
        ] {
            assert_eq!(portal.may_redirect_to(uri), expected, "{uri}");
        }
        assert!(portal.may_end_at("https://portal.example:1/"));
        assert!(
            Client::is_built_in("fairway") && Client::is_built_in("portal") && !Client::is_built_in("web")
        );
        assert_eq!(Client::built_in("web", ""), None);
    }

    #[test]
    fn names_are_names() {
        for (name, expected) in [
            ("alice", true),
            ("a.b-c", true),
            ("1", true),
            ("", false),
            ("Alice", false),
            ("a/b", false),
            ("../x", false),
            ("a..b", false),
            ("-a", false),
            ("a%2f", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }

    #[test]
    fn origins_fit_a_policy() {
        for (uri, expected) in [
            ("https://a.b:1/c?d", Some("https://a.b:1")),
            ("http://[::1]:5/cb", Some("http://[::1]:5")),
            ("com.example.app:/cb", Some("com.example.app:")),
            ("https://a;script-src *", None),
            ("https:///x", None),
            ("x", None),
        ] {
            assert_eq!(origin(uri).as_deref(), expected, "{uri}");
        }
    }
}
