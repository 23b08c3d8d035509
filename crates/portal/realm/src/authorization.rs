//! What a program asks a browser for: judged before anybody is asked for a password.
//!
//! As long as it is not certain that the address in a request belongs to the program, nobody is sent there: then the user is told
//! (RFC 6749, section 4.1.2.1). After that every fault goes back to the program.

use crate::client::Client;
use crate::params::Params;

/// The longest `state`, `nonce` and `scope`.
const MAX_TEXT: usize = 2048;

/// A request that may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The program.
    pub client: String,
    /// Where the browser goes with the code.
    pub redirect_uri: String,
    /// Given back as it is.
    pub state: Option<String>,
    /// Put into the token as it is.
    pub nonce: Option<String>,
    /// What of the asked is known.
    pub scope: String,
    /// PKCE.
    pub challenge: Option<String>,
    /// Nobody may be asked for anything.
    pub silent: bool,
    /// The user must prove who he is again.
    pub afresh: bool,
    /// The longest time since he did.
    pub max_age: Option<i64>,
    /// A name to begin with.
    pub login_hint: String,
}

/// What is to be done with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The user is told; nobody is sent anywhere.
    Tell(&'static str),
    /// The program is told.
    Return {
        /// Where.
        redirect_uri: String,
        /// Its state.
        state: Option<String>,
        /// The word of the standard.
        error: &'static str,
        /// For whoever writes the program.
        description: &'static str,
    },
    /// It goes on.
    Proceed(Authorization),
}

/// Scopes that mean something.
pub const SCOPES: [&str; 5] = ["openid", "profile", "email", "groups", "offline_access"];

/// Judges a request of a client; none if there is no client of that name.
pub fn judge(params: &Params, client: Option<&Client>) -> Verdict {
    let Some(client) = client else {
        return Verdict::Tell("The program that sent you here is not known in this organisation.");
    };
    let Some(redirect_uri) = params
        .get("redirect_uri")
        .filter(|uri| client.may_redirect_to(uri))
    else {
        return Verdict::Tell(
            "The program that sent you here wants you back at an address that is not registered for it.",
        );
    };
    let state = params.get("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > MAX_TEXT) {
        return Verdict::Tell("The program that sent you here sent too much along.");
    }
    let back = |error, description| Verdict::Return {
        redirect_uri: redirect_uri.to_owned(),
        state: state.clone(),
        error,
        description,
    };
    if params.get("request").is_some() {
        return back("request_not_supported", "request objects are not supported");
    }
    if params.get("request_uri").is_some() {
        return back("request_uri_not_supported", "request objects are not supported");
    }
    if params.text("response_type") != "code" {
        return back("unsupported_response_type", "response_type must be code");
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return back("invalid_request", "response_mode must be query");
    }
    if ["nonce", "scope"]
        .iter()
        .any(|it| params.text(it).len() > MAX_TEXT)
    {
        return back("invalid_request", "nonce or scope is too long");
    }
    let challenge = params.get("code_challenge");
    if challenge.is_some() && params.text("code_challenge_method") != "S256" {
        return back("invalid_request", "code_challenge_method must be S256");
    }
    // 32 bytes in base64url, since that is what SHA-256 gives.
    let is_digest = |it: &str| {
        it.len() == 43
            && it
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if challenge.is_some_and(|it| !is_digest(it)) {
        return back(
            "invalid_request",
            "code_challenge is not the digest of a verifier",
        );
    }
    if challenge.is_none() && client.public {
        return back(
            "invalid_request",
            "code_challenge is required: the client is public",
        );
    }
    let prompts: Vec<&str> = params
        .text("prompt")
        .split(' ')
        .filter(|it| !it.is_empty())
        .collect();
    let silent = prompts.contains(&"none");
    if silent && prompts.len() > 1 {
        return back("invalid_request", "prompt=none stands alone");
    }
    let max_age = match params.get("max_age").map(str::parse::<i64>) {
        None => None,
        Some(Ok(age)) if age >= 0 => Some(age),
        Some(_) => return back("invalid_request", "max_age is not a number of seconds"),
    };
    Verdict::Proceed(Authorization {
        client: client.id.clone(),
        redirect_uri: redirect_uri.to_owned(),
        state: state.clone(),
        nonce: params.get("nonce").map(str::to_owned),
        scope: known_scopes(params.text("scope")),
        challenge: challenge.map(str::to_owned),
        silent,
        afresh: prompts.contains(&"login") || prompts.contains(&"select_account"),
        max_age,
        login_hint: params.text("login_hint").chars().take(253).collect(),
    })
}

/// Of the asked scopes those that mean something, once each.
pub fn known_scopes(asked: &str) -> String {
    let known = SCOPES
        .iter()
        .filter(|known| asked.split(' ').any(|it| it == **known));
    known.copied().collect::<Vec<_>>().join(" ")
}

/// Whether a browser that signed in at a time needs not to do so again.
pub fn is_recent(request: &Authorization, authenticated_at: i64, now: i64) -> bool {
    !request.afresh && request.max_age.is_none_or(|age| now - authenticated_at <= age)
}

/// The address of an answer, with its parameters after those that it has.
pub fn answer(redirect_uri: &str, pairs: &[(&str, &str)]) -> String {
    let separator = if redirect_uri.contains('?') { '&' } else { '?' };
    format!(
        "{redirect_uri}{separator}{}",
        crate::params::query(pairs.iter().copied())
    )
}

#[cfg(test)]
mod tests;
