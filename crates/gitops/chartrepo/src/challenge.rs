//! What a registry asks for when it answers 401, and where the token is had that it wants (RFC 7235 and the token protocol
//! of the distribution registry).

use crate::{Unusable, Url};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// Name and password.
    Basic,
    /// A token of somebody else.
    Bearer {
        /// Where the token is had.
        realm: String,
        /// For whom it is.
        service: String,
        /// What for, separated by spaces.
        scope: String,
    },
}

/// What `WWW-Authenticate` asks for; of several things, a token. Others than these two are not known.
pub fn parse<'h>(headers: impl IntoIterator<Item = &'h str>) -> Option<Challenge> {
    let mut found = None;
    for header in headers {
        let mut rest = header;
        loop {
            let (scheme, after) = token(rest.trim_start_matches([' ', '\t', ',']));
            if scheme.is_empty() {
                break;
            }
            let (parameters, after) = parameters(after);
            rest = after;
            let get = |name: &str| {
                let same = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
                let value = parameters.iter().find(same);
                value.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            if scheme.eq_ignore_ascii_case("bearer") {
                return Some(Challenge::Bearer {
                    realm: get("realm"),
                    service: get("service"),
                    scope: get("scope"),
                });
            }
            if scheme.eq_ignore_ascii_case("basic") {
                found = Some(Challenge::Basic);
            }
        }
    }
    found
}

/// Where a token is asked for. A registry that is reached over TLS may not send anybody's password over an open line.
pub fn token_address(registry: &Url, realm: &str, service: &str, scopes: &[&str]) -> Result<Url, Unusable> {
    let address = Url::parse(realm)
        .map_err(|why| Unusable(format!("the registry names no place to get a token from: {why}")))?;
    if registry.is_tls() && !address.is_tls() {
        return Err(Unusable(format!(
            "the registry {} wants the credentials to be sent to {address}, which is not encrypted",
            registry.authority()
        )));
    }
    let mut address = address;
    if !service.is_empty() {
        address = address.with_parameter("service", service);
    }
    for scope in scopes {
        address = address.with_parameter("scope", scope);
    }
    Ok(address)
}

/// The token in an answer.
pub fn token_in(answer: &[u8]) -> Result<String, Unusable> {
    let answer: serde_json::Value = serde_json::from_slice(answer)
        .map_err(|error| Unusable(format!("the answer with the token is not JSON: {error}")))?;
    let found = ["access_token", "token"]
        .iter()
        .filter_map(|field| answer[field].as_str())
        .find(|text| !text.is_empty());
    match found {
        Some(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token.to_owned()),
        Some(_) => Err(Unusable::new("the token has characters in it that no token has")),
        None => Err(Unusable::new("the answer has no token in it")),
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

fn skip(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// `name=value, name="value"`; what follows may be the next challenge.
fn parameters(text: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let at = rest.trim_start_matches([' ', '\t', ',']);
        let (name, after) = token(at);
        let Some(after) = skip(after).strip_prefix('=').filter(|_| !name.is_empty()) else {
            return (found, at);
        };
        let after = skip(after);
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => match unquoted(quoted) {
                Some(both) => both,
                None => return (found, ""),
            },
            None => {
                let (value, after) = token(after);
                (value.to_owned(), after)
            }
        };
        found.push((name.to_owned(), value));
        rest = after;
        match skip(rest) {
            // A token68 or nonsense: the rest of this challenge is of no use.
            junk if !junk.is_empty() && !junk.starts_with(',') => {
                let next = junk.find(',').map_or("", |at| &junk[at..]);
                return (found, next);
            }
            _ => {}
        }
    }
}

fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: &str, scope: &str) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.to_owned(),
            scope: scope.to_owned(),
        })
    }

    #[test]
    fn challenges_are_read() {
        let full = r#"Bearer realm="https://auth.h/token",service="reg.h",scope="repository:a/b:pull,push""#;
        let cases: &[(&[&str], Option<Challenge>)] = &[
            (
                &[full],
                bearer("https://auth.h/token", "reg.h", "repository:a/b:pull,push"),
            ),
            (&["bearer realm=x , service = y"], bearer("x", "y", "")),
            (&["Basic realm=\"Registry Realm\""], Some(Challenge::Basic)),
            (&["BASIC"], Some(Challenge::Basic)),
            (&["Basic realm=\"a\", Bearer realm=\"b\""], bearer("b", "", "")),
            (&["Basic realm=\"a\"", "Bearer realm=\"b\""], bearer("b", "", "")),
            (&["Negotiate", "Basic"], Some(Challenge::Basic)),
            (&["Negotiate abc==, Basic realm=x"], Some(Challenge::Basic)),
            (&[r#"Bearer realm="a\"b\\c""#], bearer("a\"b\\c", "", "")),
            (&["Bearer realm=\"never ends"], bearer("", "", "")),
            (&["Digest realm=x"], None),
            (&[""], None),
            (&[",,, "], None),
            (&[], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(parse(headers.iter().copied()), *expected, "{headers:?}");
        }
    }

    #[test]
    fn tokens_are_asked_for_where_the_registry_says() {
        let registry = Url::parse("https://reg.h").unwrap();
        let found =
            token_address(&registry, "https://auth.h/t?a=1", "reg.h", &["repository:a:pull"]).unwrap();
        assert_eq!(
            found.to_string(),
            "https://auth.h/t?a=1&service=reg.h&scope=repository%3Aa%3Apull"
        );
        assert!(token_address(&registry, "http://auth.h/t", "", &[]).is_err());
        assert!(token_address(&registry, "", "", &[]).is_err());
        let open = Url::parse("http://127.0.0.1:5000").unwrap();
        assert!(token_address(&open, "http://127.0.0.1:5001/t", "", &[]).is_ok());
        for (answer, expected) in [
            (r#"{"token":"a"}"#, Some("a")),
            (r#"{"token":"a","access_token":"b"}"#, Some("b")),
            (r#"{"access_token":"","token":"a"}"#, Some("a")),
            (r#"{"token":"a\nb"}"#, None),
            ("{}", None),
            ("<html>", None),
        ] {
            assert_eq!(token_in(answer.as_bytes()).ok().as_deref(), expected, "{answer}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic_or_stay(header in ".{0,200}") {
            let _ = parse([header.as_str()]);
        }

        #[test]
        fn nor_one_that_is_nearly_right(header in "((Bearer|Basic|realm|=|\"|,| |\\\\|é|x){0,40})") {
            let _ = parse([header.as_str(), header.as_str()]);
        }
    }
}
