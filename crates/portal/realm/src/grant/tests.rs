//! What becomes of a code or a refresh token, right, wrong or stolen.

use super::*;
use crate::session::Code;

/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const KEY: &[u8] = b"a key of the realm";

fn session() -> Session {
    Session {
        user: "alice".to_owned(),
        client: "web".to_owned(),
        expires_at: time::write(1000),
        code: Some(Code {
            digest: secret::digest("right"),
            challenge: Some(CHALLENGE.to_owned()),
            redirect_uri: "https://app/cb".to_owned(),
            expires_at: time::write(60),
            redeemed: false,
        }),
        ..Session::default()
    }
}

fn offer() -> Offer<'static> {
    Offer {
        client: "web",
        secret: "right",
        redirect_uri: "https://app/cb",
        verifier: Some(VERIFIER),
    }
}

#[test]
fn a_code_is_for_one_program_one_place_one_time() {
    let with = |change: fn(&mut Code)| {
        let mut session = session();
        change(session.code.as_mut().unwrap());
        session
    };
    let device = Session {
        kind: Kind::Device,
        ..session()
    };
    let without = Session {
        code: None,
        ..session()
    };
    let cases: [(&str, Session, Offer<'_>, i64, u8); 13] = [
        ("right", session(), offer(), 59, 0),
        (
            "a guess",
            session(),
            Offer {
                secret: "wrong",
                ..offer()
            },
            59,
            1,
        ),
        (
            "a guess after use",
            with(|it| it.redeemed = true),
            Offer {
                secret: "wrong",
                ..offer()
            },
            59,
            1,
        ),
        ("no code", without, offer(), 59, 1),
        ("another kind of session", device, offer(), 59, 1),
        ("used", with(|it| it.redeemed = true), offer(), 59, 2),
        ("late", session(), offer(), 60, 2),
        (
            "another program",
            session(),
            Offer {
                client: "other",
                ..offer()
            },
            59,
            2,
        ),
        (
            "another place",
            session(),
            Offer {
                redirect_uri: "https://app/cb2",
                ..offer()
            },
            59,
            2,
        ),
        (
            "without a verifier",
            session(),
            Offer {
                verifier: None,
                ..offer()
            },
            59,
            2,
        ),
        (
            "a wrong verifier",
            session(),
            Offer {
                verifier: Some(CHALLENGE),
                ..offer()
            },
            59,
            2,
        ),
        (
            "a challenge taken away",
            with(|it| it.challenge = None),
            offer(),
            59,
            2,
        ),
        (
            "never a challenge",
            with(|it| it.challenge = None),
            Offer {
                verifier: None,
                ..offer()
            },
            59,
            0,
        ),
    ];
    for (name, session, offer, now, expected) in cases {
        let found = match redeem(&session, offer, now) {
            Outcome::Grant => 0,
            Outcome::Refuse(_) => 1,
            Outcome::Revoke(_) => 2,
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn verifiers_are_judged_by_the_standard() {
    assert!(is_verified(CHALLENGE, VERIFIER));
    for wrong in ["", "short", &VERIFIER[..42], CHALLENGE] {
        assert!(!is_verified(CHALLENGE, wrong), "{wrong}");
    }
}

#[test]
fn a_refresh_token_counts_once_and_its_copy_ends_the_session() {
    let name = format!("s{}", "0".repeat(32));
    let other = format!("s{}", "1".repeat(32));
    let session = Session {
        generation: 3,
        ..session()
    };
    let token = |generation| refresh_token(KEY, &name, generation);
    for (what, token, client, now, expected) in [
        ("right", token(3), "web", 999, Outcome::Grant),
        (
            "old",
            token(2),
            "web",
            999,
            Outcome::Revoke("the refresh token was used before"),
        ),
        (
            "from the future",
            token(4),
            "web",
            999,
            Outcome::Revoke("the refresh token was used before"),
        ),
        (
            "another program",
            token(3),
            "other",
            999,
            Outcome::Revoke("the refresh token was given to another client"),
        ),
        (
            "after the end",
            token(3),
            "web",
            1000,
            Outcome::Refuse("the session has ended"),
        ),
        (
            "forged",
            refresh_token(b"another key", &name, 3),
            "web",
            999,
            Outcome::Refuse("the refresh token is not known"),
        ),
        (
            "renumbered",
            token(2).replacen(".2.", ".3.", 1),
            "web",
            999,
            Outcome::Refuse("the refresh token is not known"),
        ),
        (
            "of another session",
            refresh_token(KEY, &other, 3),
            "web",
            999,
            Outcome::Refuse("the refresh token is not known"),
        ),
        (
            "nonsense",
            "fwr.x".to_owned(),
            "web",
            999,
            Outcome::Refuse("the refresh token is not one"),
        ),
    ] {
        assert_eq!(
            refresh(&session, &name, &token, KEY, client, now),
            expected,
            "{what}"
        );
    }
}

#[test]
fn codes_and_cookies_are_a_name_and_a_secret() {
    let name = format!("s{}", "a".repeat(32));
    let text = join(&name, "x");
    assert_eq!(split(&text), Some((name.as_str(), "x")));
    for wrong in [
        "",
        "~",
        "x~y",
        "../users/alice~x",
        &format!("{name}~"),
        &format!("{name}~{}", "x".repeat(65)),
    ] {
        assert_eq!(split(wrong), None, "{wrong}");
    }
}
