//! What a registry asks for when it answers 401, and where the token is had that it wants (RFC 7235 and the token protocol of the
//! distribution registry).

use serde_json::Value;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
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
pub(crate) fn parse<'h>(headers: impl IntoIterator<Item = &'h str>) -> Option<Challenge> {
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
                let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone()).unwrap_or_default()
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
pub(crate) fn token_address(
    is_tls: bool,
    realm: &str,
    service: &str,
    scopes: &[&str],
) -> Result<String, String> {
    let is_http = realm.starts_with("http://") || realm.starts_with("https://");
    if !is_http {
        return Err("the registry names no place to get a token from".to_owned());
    }
    if is_tls && !realm.starts_with("https://") {
        return Err(
            "the registry wants the credentials to be sent to an address that is not encrypted".to_owned(),
        );
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !service.is_empty() {
        query.append_pair("service", service);
    }
    for scope in scopes {
        query.append_pair("scope", scope);
    }
    let separator = if realm.contains('?') { '&' } else { '?' };
    Ok(format!("{realm}{separator}{}", query.finish()))
}

/// The token in an answer.
pub(crate) fn token_in(answer: &[u8]) -> Result<String, String> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|error| format!("the answer with the token is not JSON: {error}"))?;
    let found = ["access_token", "token"]
        .iter()
        .filter_map(|field| answer.get(field)?.as_str())
        .find(|text| !text.is_empty());
    match found {
        Some(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(token.to_owned()),
        Some(_) => Err("the token has characters in it that no token has".to_owned()),
        None => Err("the answer has no token in it".to_owned()),
    }
}

fn token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// `name=value, name="value"`; what follows may be the next challenge.
fn parameters(text: &str) -> (Vec<(String, String)>, &str) {
    let skip = |text: &'_ str| -> usize { text.len() - text.trim_start_matches([' ', '\t']).len() };
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let at = rest.trim_start_matches([' ', '\t', ',']);
        let (name, after) = token(at);
        let Some(after) = after[skip(after)..]
            .strip_prefix('=')
            .filter(|_| !name.is_empty())
        else {
            return (found, at);
        };
        let after = &after[skip(after)..];
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
        let junk = &rest[skip(rest)..];
        // A token68 or nonsense: the rest of this challenge is of no use.
        if !junk.is_empty() && !junk.starts_with(',') {
            return (found, junk.find(',').map_or("", |at| &junk[at..]));
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

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: &str, scope: &str| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.to_owned(),
                scope: scope.to_owned(),
            })
        };
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth/t",service="r",scope="repository:a:pull""#,
                bearer("https://auth/t", "r", "repository:a:pull"),
            ),
            (
                r#"Basic realm="x", Bearer realm="https://a""#,
                bearer("https://a", "", ""),
            ),
            ("basic", Some(Challenge::Basic)),
            ("Negotiate", None),
            ("", None),
            (r#"Bearer realm="cut"#, bearer("", "", "")),
        ] {
            assert_eq!(parse([header]), expected, "{header}");
        }
    }

    #[test]
    fn tokens_are_asked_for_where_it_is_safe() {
        let address = token_address(true, "https://auth/t", "r", &["repository:a:pull"]).unwrap();
        assert_eq!(address, "https://auth/t?service=r&scope=repository%3Aa%3Apull");
        assert!(token_address(true, "http://auth/t", "", &[]).is_err());
        assert!(token_address(false, "http://auth/t", "", &[]).is_ok());
        assert!(token_address(false, "file:///etc/passwd", "", &[]).is_err());
        assert_eq!(token_in(br#"{"token": "abc"}"#).unwrap(), "abc");
        assert!(token_in(br#"{"token": "a\r\nb"}"#).is_err());
        assert!(token_in(b"{}").is_err());
    }

    proptest! {
        #[test]
        fn strange_headers_do_no_harm(header in "\\PC{0,120}") {
            let _ = parse([header.as_str()]);
        }
    }
}
