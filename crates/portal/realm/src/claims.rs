//! What tokens say, and whether a token that says something is good now.

use serde_json::{Value, json};

use crate::directory::Member;
use crate::session::Session;

/// The audience of tokens for the Kubernetes API, Git and the portal.
pub const API: &str = "fairway";
/// The type in the head of an access token (RFC 9068). An ID token has another, and is no key to anything.
pub const ACCESS: &str = "at+jwt";
/// The type in the head of an ID token.
pub const ID: &str = "JWT";
/// Bytes of groups in an access token, which is sent with every request: more than most servers take in a header are left out.
const MAX_GROUPS: usize = 4 * 1024;
/// Seconds by which clocks may differ.
const LEEWAY: i64 = 5;

/// Of what a token is made.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The address of the realm.
    pub issuer: &'a str,
    /// Who.
    pub member: &'a Member,
    /// The name of the session.
    pub session_name: &'a str,
    /// The session.
    pub session: &'a Session,
    /// Whether the program may use the API.
    pub api_access: bool,
}

/// The claims of an access token.
pub fn access(subject: Subject<'_>, id: &str, now: i64, seconds: i64) -> Value {
    let audience = if subject.api_access {
        json!([API, subject.issuer])
    } else {
        json!([subject.issuer])
    };
    let mut claims = json!({
        "iss": subject.issuer, "aud": audience, "sub": subject.member.uid, "client_id": subject.session.client,
        "iat": now, "exp": now + seconds, "jti": id, "sid": subject.session_name, "scope": subject.session.scope,
        "preferred_username": subject.member.name,
    });
    // For those who let in by group and see nothing but the token. Our own API looks every time, and reads none of it.
    let groups = &subject.member.groups;
    let length: usize = groups.iter().map(|group| group.len() + 3).sum();
    if subject.session.has_scope("groups") && length <= MAX_GROUPS {
        claims["groups"] = json!(groups);
    }
    claims
}

/// The claims of an ID token. `access_hash` ties the access token to it.
pub fn id(subject: Subject<'_>, now: i64, seconds: i64, access_hash: &str) -> Value {
    let session = subject.session;
    let mut claims = about(subject.member, session);
    let more = json!({
        "iss": subject.issuer, "aud": session.client, "azp": session.client, "iat": now, "exp": now + seconds,
        "auth_time": session.authenticated_at(), "sid": subject.session_name, "at_hash": access_hash,
    });
    extend(&mut claims, more);
    if let Some(nonce) = &session.nonce {
        claims["nonce"] = json!(nonce);
    }
    if !session.methods.is_empty() {
        claims["amr"] = json!(session.methods);
    }
    claims
}

fn extend(claims: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (claims, more) {
        all.extend(more);
    }
}

/// What a program may know of somebody, by what it asked for.
pub fn about(member: &Member, session: &Session) -> Value {
    let mut claims = json!({"sub": member.uid});
    if session.has_scope("profile") {
        claims["preferred_username"] = json!(member.name);
        let name = if member.display_name.is_empty() {
            &member.name
        } else {
            &member.display_name
        };
        claims["name"] = json!(name);
    }
    if session.has_scope("email") && !member.email.is_empty() {
        claims["email"] = json!(member.email);
        // Whoever administers the realm has written it down; nobody has sent a mail there.
        claims["email_verified"] = json!(false);
    }
    if session.has_scope("groups") {
        claims["groups"] = json!(member.groups);
    }
    claims
}

/// Why a token is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else made it.
    #[error("the token is from another issuer")]
    Issuer,
    /// It is for something else.
    #[error("the token is not for this API")]
    Audience,
    /// Its time is up, or not yet there.
    #[error("the token has expired")]
    Expired,
    /// It has no user or no session.
    #[error("the token is not whole")]
    Malformed,
}

/// What an access token claims, once its signature was found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The user's identity.
    pub uid: String,
    /// Her name.
    pub user: String,
    /// The session.
    pub session: String,
    /// The program.
    pub client: String,
    /// Its own id.
    pub id: String,
    /// When it ends.
    pub expires: i64,
}

/// Judges the claims of an access token for an audience.
pub fn judge(claims: &Value, issuer: &str, audience: &str, now: i64) -> Result<Access, Refusal> {
    let text = |claim: &str| {
        claims[claim]
            .as_str()
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
    };
    if text("iss").as_deref() != Some(issuer) {
        return Err(Refusal::Issuer);
    }
    let audiences = claims["aud"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !audiences.iter().any(|it| it == audience) {
        return Err(Refusal::Audience);
    }
    let expires = claims["exp"].as_i64().unwrap_or(0);
    if now >= expires || claims["iat"].as_i64().is_none_or(|at| at > now + LEEWAY) {
        return Err(Refusal::Expired);
    }
    let whole = || {
        Some(Access {
            uid: text("sub")?,
            user: text("preferred_username")?,
            session: text("sid")?,
            client: text("client_id")?,
            id: text("jti")?,
            expires,
        })
    };
    whole().ok_or(Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Member {
        Member {
            realm: "acme".to_owned(),
            name: "alice".to_owned(),
            uid: "u-1".to_owned(),
            display_name: String::new(),
            email: "a@example.com".to_owned(),
            groups: vec!["developers".to_owned()],
        }
    }

    fn session(scope: &str) -> Session {
        Session {
            client: "web".to_owned(),
            scope: scope.to_owned(),
            nonce: Some("n".to_owned()),
            methods: vec!["pwd".to_owned()],
            ..Session::default()
        }
    }

    #[test]
    fn an_access_token_is_good_for_what_it_was_made_for() {
        let (member, session) = (member(), session("openid"));
        let subject = Subject {
            issuer: "https://id/realms/acme",
            member: &member,
            session_name: "s1",
            session: &session,
            api_access: true,
        };
        let good = access(subject, "j", 100, 300);
        let read = judge(&good, "https://id/realms/acme", API, 399).unwrap();
        assert_eq!(
            (read.user.as_str(), read.uid.as_str(), read.session.as_str()),
            ("alice", "u-1", "s1")
        );
        let without = access(
            Subject {
                api_access: false,
                ..subject
            },
            "j",
            100,
            300,
        );
        let mut anonymous = good.clone();
        anonymous["sub"] = json!("");
        for (claims, issuer, now, expected) in [
            (&good, "https://id/realms/other", 100, Refusal::Issuer),
            (&good, "https://id/realms/acme", 400, Refusal::Expired),
            (&good, "https://id/realms/acme", 90, Refusal::Expired),
            (&without, "https://id/realms/acme", 100, Refusal::Audience),
            (&anonymous, "https://id/realms/acme", 100, Refusal::Malformed),
        ] {
            assert_eq!(judge(claims, issuer, API, now), Err(expected));
        }
        let id = id(subject, 100, 300, "h");
        assert_eq!(
            judge(&id, "https://id/realms/acme", API, 100),
            Err(Refusal::Audience)
        );
        assert_eq!(
            (&id["nonce"], &id["aud"], &id["at_hash"]),
            (&json!("n"), &json!("web"), &json!("h"))
        );
    }

    #[test]
    fn an_access_token_tells_groups_to_who_asked_for_them() {
        let said = |scope: &str, member: &Member| {
            let session = session(scope);
            let subject = Subject {
                issuer: "i",
                member,
                session_name: "s1",
                session: &session,
                api_access: false,
            };
            access(subject, "j", 100, 300).get("groups").cloned()
        };
        let (member, mut busy) = (self::member(), self::member());
        busy.groups = (0..1000).map(|number| format!("group-{number}")).collect();
        assert_eq!(said("openid groups", &member), Some(json!(["developers"])));
        assert_eq!(said("openid", &member), None);
        assert_eq!(
            said("openid groups", &busy),
            None,
            "no server would take the token"
        );
    }

    #[test]
    fn a_program_knows_what_it_asked_for() {
        for (scope, expected) in [
            ("openid", json!({"sub": "u-1"})),
            (
                "openid profile",
                json!({"sub": "u-1", "preferred_username": "alice", "name": "alice"}),
            ),
            (
                "openid email",
                json!({"sub": "u-1", "email": "a@example.com", "email_verified": false}),
            ),
            ("openid groups", json!({"sub": "u-1", "groups": ["developers"]})),
        ] {
            assert_eq!(about(&member(), &session(scope)), expected, "{scope}");
        }
    }
}
