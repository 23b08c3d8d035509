//! Other OpenID providers that a realm lets people sign in with: how they are set up, what they say of themselves, and where a
//! browser is sent. Whom their tokens stand for is in [`visitor`], who of the realm that is in [`entry`].

pub mod entry;
pub mod pending;
pub mod visitor;

use serde_json::Value;

use crate::authorization;

/// Asked for if nothing is said.
const SCOPES: &str = "openid profile email";
/// Without it a provider gives no ID token.
const OPENID: &str = "openid";
/// The longest address that a provider may name.
const MAX_ADDRESS: usize = 2048;

/// A provider, as the settings of a realm have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// The name, which is a part of addresses.
    pub name: String,
    /// For people.
    pub display_name: String,
    /// Its address.
    pub issuer: String,
    /// What it knows the realm as.
    pub client_id: String,
    /// What it is asked for, separated by spaces.
    pub scopes: String,
    /// Which claims say what.
    pub claims: Claims,
    /// Whether whoever comes for the first time becomes a user.
    pub create_users: bool,
    /// Who vouches for its certificate beside the machine's authorities, in PEM; empty: nobody.
    pub authorities: String,
}

/// Names of claims; an empty one says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The name that a new user gets.
    pub username: String,
    /// The name for people.
    pub display_name: String,
    /// The mail address.
    pub email: String,
    /// The groups.
    pub groups: String,
}

impl IdentityProvider {
    /// Those of a Realm object. What its schema would refuse is left out.
    pub fn all(realm: &Value) -> Vec<Self> {
        let entries = realm["spec"]["identityProviders"].as_array();
        let entries = entries.map(Vec::as_slice).unwrap_or_default();
        entries.iter().filter_map(Self::read).collect()
    }

    fn read(entry: &Value) -> Option<Self> {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let claim = |field: &str, default: &str| {
            let named = entry["claimMappings"][field].as_str();
            named.unwrap_or(default).to_owned()
        };
        let (name, issuer, client_id) = (text("name"), text("issuer"), text("clientID"));
        if !is_name(&name) || !is_address(&issuer) || client_id.is_empty() {
            return None;
        }
        let display_name = match text("displayName") {
            none if none.is_empty() => name.clone(),
            given => given,
        };
        let scopes = entry["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
        let scopes = match scopes.as_slice() {
            [] => SCOPES.to_owned(),
            given if given.contains(&OPENID) => given.join(" "),
            given => format!("{OPENID} {}", given.join(" ")),
        };
        Some(Self {
            name,
            display_name,
            issuer,
            client_id,
            scopes,
            claims: Claims {
                username: claim("username", "preferred_username"),
                display_name: claim("displayName", "name"),
                email: claim("email", "email"),
                groups: claim("groups", "groups"),
            },
            create_users: entry["createUsers"] != false,
            authorities: text("certificateAuthority"),
        })
    }
}

/// A label of a host name: groups of a provider are written `PROVIDER:GROUP`.
fn is_name(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 63
        && name.bytes().all(|b| is_letter(b) || b == b'-')
        && name.bytes().next().is_some_and(is_letter)
        && name.bytes().last().is_some_and(is_letter)
}

/// Whether something of a provider may be at an address: with TLS, unless it is on this machine.
pub fn is_address(url: &str) -> bool {
    let is_plain = url.len() <= MAX_ADDRESS
        && url
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"#@\\\"<>".contains(&b));
    let has_host = |rest: &str| !rest.is_empty() && !rest.starts_with(['/', '?', ':']);
    let is_here = |rest: &str| {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        hosts.iter().any(|it| {
            let port = host.strip_prefix(it);
            port.is_some_and(|port| {
                port.is_empty() || port.strip_prefix(':').is_some_and(|it| it.parse::<u16>().is_ok())
            })
        })
    };
    is_plain
        && match url.split_once("://") {
            Some(("https", rest)) => has_host(rest),
            Some(("http", rest)) => is_here(rest),
            _ => false,
        }
}

/// Where a provider says what it can do.
pub fn discovery(issuer: &str) -> String {
    format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    )
}

/// What a provider says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Where browsers are sent.
    pub authorization: String,
    /// Where codes become tokens.
    pub token: String,
    /// Its keys.
    pub jwks: String,
    /// Where it tells more about somebody.
    pub userinfo: Option<String>,
    /// Whether it takes a secret as `Basic`.
    pub takes_basic: bool,
    /// Whether it always says who sends a browser back (RFC 9207).
    pub names_itself: bool,
}

/// Reads a discovery document. It must be that of the issuer.
pub fn endpoints(document: &Value, issuer: &str) -> Result<Endpoints, String> {
    let named = document["issuer"].as_str().unwrap_or_default();
    if named != issuer {
        return Err(format!(
            "its configuration says that its issuer is {named:?}; the realm's identityProviders must have it letter by letter"
        ));
    }
    let address = |field: &str| match document[field].as_str() {
        None => Err(format!("its configuration has no {field}")),
        Some(url) if !is_address(url) => Err(format!(
            "the {field} of its configuration is no address with https://"
        )),
        Some(url) => Ok(url.to_owned()),
    };
    let methods = document["token_endpoint_auth_methods_supported"].as_array();
    Ok(Endpoints {
        authorization: address("authorization_endpoint")?,
        token: address("token_endpoint")?,
        jwks: address("jwks_uri")?,
        userinfo: match document["userinfo_endpoint"].is_string() {
            true => Some(address("userinfo_endpoint")?),
            false => None,
        },
        // Without a word that is what it takes.
        takes_basic: methods.is_none_or(|all| all.iter().any(|it| it == "client_secret_basic")),
        names_itself: document["authorization_response_iss_parameter_supported"] == true,
    })
}

/// What a browser is sent to a provider with.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Where it comes back to.
    pub callback: &'a str,
    /// What it comes back with.
    pub state: &'a str,
    /// What the token has to say.
    pub nonce: &'a str,
    /// PKCE.
    pub challenge: &'a str,
    /// What the program wants that sent it here.
    pub wanted: Option<&'a crate::Authorization>,
}

/// Where a browser is sent.
pub fn address(provider: &IdentityProvider, endpoints: &Endpoints, question: Question<'_>) -> String {
    let wanted = question.wanted;
    let max_age = wanted.and_then(|it| it.max_age).map(|age| age.to_string());
    authorization::answer(
        &endpoints.authorization,
        &[
            ("response_type", "code"),
            ("client_id", &provider.client_id),
            ("redirect_uri", question.callback),
            ("scope", &provider.scopes),
            ("state", question.state),
            ("nonce", question.nonce),
            ("code_challenge", question.challenge),
            ("code_challenge_method", "S256"),
            (
                "prompt",
                if wanted.is_some_and(|it| it.afresh) {
                    "login"
                } else {
                    ""
                },
            ),
            ("max_age", max_age.as_deref().unwrap_or_default()),
            ("login_hint", wanted.map_or("", |it| it.login_hint.as_str())),
        ],
    )
}

#[cfg(test)]
mod tests;
