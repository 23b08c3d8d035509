//! What is said of wrong files.

use super::*;

const OWN: &str = "https://own";

fn file(jwt: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n{}",
        jwt.trim_matches('\n')
    )
}

const GOOD: &str = r#"
- issuer: {url: https://a.example, audiences: [me]}
  claimMappings: {username: {claim: sub, prefix: "a:"}}
- issuer:
    url: https://b.example/realms/x
    discoveryURL: https://b.internal/discovery
    audiences: [me, you]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: "claims.email_verified == true", message: verify your address}
  claimMappings:
    username: {expression: "'b:' + claims.email"}
    groups: {expression: "claims.?roles.orValue([])"}
    uid: {claim: sub}
    extra:
    - {key: example.com/tenant, valueExpression: claims.tenant}
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: reserved}
"#;

#[test]
fn several_issuers_are_read() {
    let read = parse(file(GOOD).as_bytes(), OWN).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[1].audiences, ["me", "you"]);
    assert_eq!(
        read[1].discovery_url.as_deref(),
        Some("https://b.internal/discovery")
    );
    assert_eq!((read[1].claim_rules.len(), read[1].required.len()), (1, 1));
    assert!(
        parse(
            b"apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration",
            OWN
        )
        .unwrap()
        .is_empty()
    );
}

/// What in the good file is replaced by what, and what is said then.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "url: https://a.example",
        "url: http://a.example",
        "jwt[0].issuer.url: Invalid value: \"http://a.example\": URL scheme must be https",
    ),
    (
        "url: https://a.example",
        "url: https://own",
        "must not overlap with disallowed issuers",
    ),
    (
        "url: https://a.example",
        "url: https://b.example/realms/x",
        "jwt[1].issuer.url: Duplicate value",
    ),
    ("url: https://a.example,", "", "jwt[0].issuer.url: Required value"),
    (
        "url: https://a.example",
        "url: https://u:p@a.example",
        "must not contain a username or password",
    ),
    (
        "url: https://a.example",
        "url: https://a.example?x=1",
        "must not contain a query",
    ),
    (
        "url: https://a.example",
        "url: 'https://a.example#x'",
        "must not contain a fragment",
    ),
    (
        "url: https://a.example",
        "uri: https://a.example",
        "unknown field \"jwt[0].issuer.uri\"",
    ),
    (
        "https://b.internal/discovery",
        "https://b.example/realms/x/",
        "discoveryURL must be different from URL",
    ),
    (
        "audiences: [me]",
        "audiences: []",
        "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
    ),
    (
        "audiences: [me, you]",
        "audiences: [me, me]",
        "jwt[1].issuer.audiences[1]: Duplicate value",
    ),
    (
        "audienceMatchPolicy: MatchAny",
        "audienceMatchPolicy: ''",
        "audienceMatchPolicy must be MatchAny for multiple audiences",
    ),
    (
        "audiences: [me]",
        "audiences: [me], certificateAuthority: nonsense",
        "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\"",
    ),
    (
        ", prefix: \"a:\"",
        "",
        "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set",
    ),
    (
        "claim: sub, prefix: \"a:\"",
        "prefix: x",
        "jwt[0].claimMappings.username: Required value: claim or expression is required",
    ),
    (
        "claim: sub, prefix: \"a:\"",
        "claim: sub, expression: claims.sub",
        "claim and expression can't both be set",
    ),
    (
        "claims.?roles.orValue([])",
        "claims.",
        "jwt[1].claimMappings.groups.expression: Invalid value: \"claims.\": compilation failed",
    ),
    (
        "claims.email_verified == true",
        "claims.sub",
        "jwt[1].claimValidationRules[1].expression: Invalid value: \"claims.sub\": compilation failed",
    ),
    (
        "claims.email_verified == true",
        "true",
        "claims.email_verified must be used in",
    ),
    (
        "requiredValue: example.com",
        "requiredValue: example.com, message: x",
        "may not be specified when claim is set",
    ),
    (
        "key: example.com/tenant",
        "key: tenant",
        "must be a domain-prefixed path",
    ),
    (
        "key: example.com/tenant",
        "key: x.k8s.io/tenant",
        "are reserved for Kubernetes use",
    ),
    (
        "key: example.com/tenant",
        "key: example.com/Tenant",
        "must be lowercase",
    ),
    (
        "user.username.startsWith",
        "user.name.startsWith",
        "jwt[1].userValidationRules[0].expression: Invalid value",
    ),
];

#[test]
fn wrong_files_are_refused_with_the_place() {
    for (from, to, expected) in WRONG {
        assert!(GOOD.contains(from), "{from}");
        let error = parse(file(&GOOD.replacen(from, to, 1)).as_bytes(), OWN).unwrap_err();
        assert!(
            error.contains(expected),
            "{from} -> {to}\n gave {error}\n not {expected}"
        );
    }
}

#[test]
fn flags_are_a_short_form_of_the_file() {
    let flags = |claim: Option<&str>, prefix: Option<&str>| Flags {
        issuer_url: "https://i".to_owned(),
        client_id: "me".to_owned(),
        username_claim: claim.map(str::to_owned),
        username_prefix: prefix.map(str::to_owned),
        ..Flags::default()
    };
    for (claim, prefix, expected) in [
        (None, None, "https://i#"),
        (Some("email"), None, ""),
        (Some("email"), Some("mail:"), "mail:"),
        (Some("name"), Some("-"), ""),
    ] {
        let read = from_flags(&flags(claim, prefix), OWN).unwrap().remove(0);
        let Source::Claim { prefix: got, .. } = read.username else {
            panic!("not a claim")
        };
        assert_eq!(got, expected);
    }
    let mut wrong = flags(None, None);
    wrong.required_claims = vec!["x".to_owned()];
    assert!(from_flags(&wrong, OWN).unwrap_err().contains("KEY=VALUE"));
    wrong.issuer_url = "http://i".to_owned();
    wrong.required_claims.clear();
    assert!(from_flags(&wrong, OWN).unwrap_err().contains("https"));
}
