//! Every way in which a request of a program can be wrong, and what becomes of it.

use serde_json::json;

use super::*;

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

fn public() -> Client {
    Client::read(
        "spa",
        &json!({"spec": {"public": true, "redirectURIs": ["https://app/cb", "https://app/cb?t=1"]}}),
    )
}

fn verdict(query: &str, client: &Client) -> Verdict {
    judge(&Params::parse(query).unwrap(), Some(client))
}

#[test]
fn nobody_is_sent_to_an_address_that_is_not_certain() {
    let client = public();
    assert!(matches!(judge(&Params::default(), None), Verdict::Tell(_)));
    for query in [
        "response_type=code",
        "response_type=code&redirect_uri=https://evil/cb",
        "response_type=token&redirect_uri=https://evil/cb&state=x",
    ] {
        assert!(matches!(verdict(query, &client), Verdict::Tell(_)), "{query}");
    }
    let long = format!("redirect_uri=https://app/cb&state={}", "x".repeat(MAX_TEXT + 1));
    assert!(matches!(verdict(&long, &client), Verdict::Tell(_)));
}

#[test]
fn the_program_is_told_what_is_wrong() {
    let client = public();
    let right = format!("code_challenge={CHALLENGE}&code_challenge_method=S256");
    for (query, expected) in [
        ("response_type=token".to_owned(), "unsupported_response_type"),
        (
            "response_type=code%20token".to_owned(),
            "unsupported_response_type",
        ),
        (String::new(), "unsupported_response_type"),
        ("response_type=code".to_owned(), "invalid_request"),
        (
            format!("response_type=code&code_challenge={CHALLENGE}"),
            "invalid_request",
        ),
        (
            format!("response_type=code&code_challenge={CHALLENGE}&code_challenge_method=plain"),
            "invalid_request",
        ),
        (
            "response_type=code&code_challenge=short&code_challenge_method=S256".to_owned(),
            "invalid_request",
        ),
        (
            format!("response_type=code&{right}&response_mode=fragment"),
            "invalid_request",
        ),
        (
            format!("response_type=code&{right}&request=e30"),
            "request_not_supported",
        ),
        (
            format!("response_type=code&{right}&request_uri=https://x"),
            "request_uri_not_supported",
        ),
        (
            format!("response_type=code&{right}&prompt=none%20login"),
            "invalid_request",
        ),
        (format!("response_type=code&{right}&max_age=x"), "invalid_request"),
        (
            format!("response_type=code&{right}&max_age=-1"),
            "invalid_request",
        ),
    ] {
        let query = format!("redirect_uri=https://app/cb&state=s&{query}");
        match verdict(&query, &client) {
            Verdict::Return {
                error,
                state,
                redirect_uri,
                ..
            } => {
                assert_eq!((error, state.as_deref()), (expected, Some("s")), "{query}");
                assert_eq!(redirect_uri, "https://app/cb");
            }
            other => panic!("{query}: {other:?}"),
        }
    }
}

#[test]
fn a_sound_request_goes_on() {
    let query = format!(
        "redirect_uri=https://app/cb&response_type=code&code_challenge={CHALLENGE}&code_challenge_method=S256&nonce=n&\
         scope=openid%20groups%20unknown%20openid&prompt=login&max_age=0&login_hint=alice&state=a%26b"
    );
    let Verdict::Proceed(found) = verdict(&query, &public()) else {
        panic!("refused");
    };
    let expected = Authorization {
        client: "spa".to_owned(),
        redirect_uri: "https://app/cb".to_owned(),
        state: Some("a&b".to_owned()),
        nonce: Some("n".to_owned()),
        scope: "openid groups".to_owned(),
        challenge: Some(CHALLENGE.to_owned()),
        silent: false,
        afresh: true,
        max_age: Some(0),
        login_hint: "alice".to_owned(),
    };
    assert_eq!(found, expected);
    assert!(!is_recent(&found, 100, 100));
    let relaxed = Authorization {
        afresh: false,
        max_age: Some(10),
        ..found
    };
    assert!(is_recent(&relaxed, 90, 100) && !is_recent(&relaxed, 89, 100));
}

#[test]
fn a_program_with_a_secret_may_do_without_a_challenge() {
    let client = Client {
        public: false,
        ..public()
    };
    let found = verdict("redirect_uri=https://app/cb&response_type=code", &client);
    assert!(matches!(found, Verdict::Proceed(_)), "{found:?}");
}

#[test]
fn answers_keep_the_parameters_of_the_address() {
    assert_eq!(
        answer("https://a/cb", &[("code", "x&y"), ("state", "")]),
        "https://a/cb?code=x%26y"
    );
    assert_eq!(
        answer("https://a/cb?t=1", &[("code", "x")]),
        "https://a/cb?t=1&code=x"
    );
}
