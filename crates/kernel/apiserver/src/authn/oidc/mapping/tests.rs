//! Claims and the users that they become.

use super::super::config::parse;
use super::*;

fn authenticator(mappings: &str) -> Authenticator {
    let file = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [{{issuer: {{url: \
         https://i, audiences: [a]}}, {mappings}}}]}}"
    );
    parse(file.as_bytes(), "https://own").unwrap().remove(0)
}

/// The mapping, the claims, and the user (or the start of the error).
const CASES: &[(&str, &str, &str)] = &[
    (
        "claimMappings: {username: {claim: sub, prefix: 'i:'}}",
        r#"{"sub": "jane"}"#,
        "i:jane []",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "jane"}"#,
        "jane []",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"x": 1}"#,
        "! oidc: parse username claims \"sub\": claim not present",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": 1}"#,
        "! oidc: parse username claims \"sub\": not a string",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": ""}"#,
        "! oidc: parse username claims",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "system:admin"}"#,
        "! oidc: username \"system:admin\" is reserved",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: 'system:'}}",
        r#"{"sub": "admin"}"#,
        "! oidc: username \"system:admin\" is reserved",
    ),
    (
        "claimMappings: {username: {claim: email, prefix: ''}}",
        r#"{"email": "j@x"}"#,
        "j@x []",
    ),
    (
        "claimMappings: {username: {claim: email, prefix: ''}}",
        r#"{"email": "j@x", "email_verified": true}"#,
        "j@x []",
    ),
    (
        "claimMappings: {username: {claim: email, prefix: ''}}",
        r#"{"email": "j@x", "email_verified": false}"#,
        "! oidc: email not verified",
    ),
    (
        "claimMappings: {username: {claim: email, prefix: ''}}",
        r#"{"email": "j@x", "email_verified": "true"}"#,
        "! oidc: parse 'email_verified' claim",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: 'i:'}}",
        r#"{"sub": "j", "g": ["a", "b"]}"#,
        "j [i:a i:b]",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j", "g": "a"}"#,
        "j [a]",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j"}"#,
        "j []",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j", "g": [1]}"#,
        "! oidc: parse groups claim",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j", "g": ["system:masters"]}"#,
        "! oidc: group \"system:masters\" is reserved",
    ),
    (
        "claimMappings: {username: {expression: \"claims.a + ':' + claims.b.c\"}}",
        r#"{"a": "x", "b": {"c": "y"}}"#,
        "x:y []",
    ),
    (
        "claimMappings: {username: {expression: claims.a}}",
        r#"{"a": 1}"#,
        "! oidc: error evaluating username claim expression: username claim expression must return a string",
    ),
    (
        "claimMappings: {username: {expression: claims.a}}",
        r#"{"a": ""}"#,
        "! oidc: empty username via CEL expression is not allowed",
    ),
    (
        "claimMappings: {username: {expression: claims.a}}",
        "{}",
        "! oidc: error evaluating username claim expression",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, groups: {expression: 'claims.r.map(r, r.name)'}}",
        r#"{"sub": "j", "r": [{"name": "a"}]}"#,
        "j [a]",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, uid: {claim: oid}}",
        r#"{"sub": "j", "oid": "7"}"#,
        "j [] uid=7",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, uid: {claim: oid}}",
        r#"{"sub": "j"}"#,
        "! oidc: parse uid claim",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: x.io/t, valueExpression: claims.t}]}",
        r#"{"sub": "j", "t": ["a"], "jti": "1"}"#,
        "j [] authentication.kubernetes.io/credential-id=[\"JTI=1\"] x.io/t=[\"a\"]",
    ),
    (
        "claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: x.io/t, valueExpression: claims.t}]}",
        r#"{"sub": "j", "t": ""}"#,
        "j []",
    ),
    (
        "claimValidationRules: [{claim: hd, requiredValue: x}], claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "j", "hd": "x"}"#,
        "j []",
    ),
    (
        "claimValidationRules: [{claim: hd, requiredValue: x}], claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "j"}"#,
        "! oidc: required claim hd not present in ID token",
    ),
    (
        "claimValidationRules: [{claim: hd, requiredValue: x}], claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "j", "hd": "z"}"#,
        "! oidc: required claim hd value does not match. Got = z, want = x",
    ),
    (
        "claimValidationRules: [{expression: claims.exp - claims.nbf <= 86400, message: too long}], claimMappings: {username: {claim: sub, prefix: ''}}",
        r#"{"sub": "j", "exp": 90000, "nbf": 1}"#,
        "! oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.nbf <= 86400' failed: too long",
    ),
    (
        "userValidationRules: [{expression: 'user.groups.exists(g, g == \"dev\")', message: not a developer}], claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j", "g": ["ops"]}"#,
        "! oidc: error evaluating user info validation rule: validation expression",
    ),
    (
        "userValidationRules: [{expression: 'user.groups.exists(g, g == \"dev\")'}], claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: g, prefix: ''}}",
        r#"{"sub": "j", "g": ["dev"]}"#,
        "j [dev]",
    ),
];

#[test]
fn claims_become_users() {
    for (mappings, claims, expected) in CASES {
        let claims: Value = serde_json::from_str(claims).unwrap();
        let got = match user(&authenticator(mappings), &claims) {
            Err(error) => format!("! {error}"),
            Ok(user) => {
                let mut text = format!("{} [{}]", user.name, user.groups.join(" "));
                if !user.uid.is_empty() {
                    text.push_str(&format!(" uid={}", user.uid));
                }
                for (key, values) in &user.extra {
                    text.push_str(&format!(" {key}={values:?}"));
                }
                text
            }
        };
        let right = if expected.starts_with('!') {
            got.starts_with(expected)
        } else {
            got == *expected
        };
        assert!(right, "{mappings}\n {claims}\n gave {got}\n not {expected}");
    }
}
