//! Who may do what, by CSV.

use super::*;

const CSV: &str = r#"
# a comment
p, role:team, applications, get, shop/*, allow
p, role:team, applications, sync, shop/*, allow
p, role:team, applications, sync, shop/bank, deny
p, role:team, applications, action/apps/Deployment/*, shop/*, allow
p, carol, projects, *, *, allow
p, "dave, the second", clusters, get, https://*, allow
g, red, role:team
g, alice, role:admin
g, role:loop, role:loop2
g, role:loop2, role:loop
"#;

fn ask(policies: &Policies, subjects: &[&str], (resource, action, object): (&str, &str, &str)) -> bool {
    policies.allows(
        subjects,
        Request {
            resource,
            action,
            object,
        },
    )
}

#[test]
fn policies_decide() {
    let policies = Policies::read(CSV, "", MatchMode::Glob).unwrap();
    type Case<'a> = (&'a str, &'a [&'a str], (&'a str, &'a str, &'a str), bool);
    let cases: &[Case<'_>] = &[
        ("nobody", &["bob"], ("applications", "get", "shop/web"), false),
        (
            "by group",
            &["bob", "red"],
            ("applications", "get", "shop/web"),
            true,
        ),
        (
            "another project",
            &["bob", "red"],
            ("applications", "get", "bank/web"),
            false,
        ),
        ("allowed", &["red"], ("applications", "sync", "shop/web"), true),
        ("denied", &["red"], ("applications", "sync", "shop/bank"), false),
        (
            "an action",
            &["red"],
            ("applications", "action/apps/Deployment/restart", "shop/web"),
            true,
        ),
        (
            "another action",
            &["red"],
            ("applications", "action/apps/StatefulSet/restart", "shop/web"),
            false,
        ),
        ("a star", &["carol"], ("projects", "delete", "x"), true),
        (
            "quotes",
            &["dave, the second"],
            ("clusters", "get", "https://a/b"),
            true,
        ),
        (
            "an administrator",
            &["alice"],
            ("applications", "delete/*/Pod/*/*", "any/thing"),
            true,
        ),
        (
            "an administrator sees, too",
            &["alice"],
            ("logs", "get", "any/thing"),
            true,
        ),
        (
            "the user admin",
            &["admin"],
            ("clusters", "create", "https://x"),
            true,
        ),
        (
            "a reader",
            &["role:readonly"],
            ("applications", "sync", "a/b"),
            false,
        ),
        (
            "one group allows what another denies",
            &["red", "alice"],
            ("applications", "sync", "shop/bank"),
            true,
        ),
        (
            "roles that go in circles",
            &["role:loop"],
            ("applications", "get", "a/b"),
            false,
        ),
    ];
    for (reason, subjects, request, expected) in cases {
        assert_eq!(ask(&policies, subjects, *request), *expected, "{reason}");
    }
}

#[test]
fn everybody_has_the_default_role() {
    let policies = Policies::read("", "role:readonly", MatchMode::Glob).unwrap();
    assert!(ask(&policies, &["bob"], ("applications", "get", "a/b")));
    assert!(!ask(&policies, &["bob"], ("applications", "sync", "a/b")));
    let none = Policies::read("", "", MatchMode::Glob).unwrap();
    assert!(!ask(&none, &[], ("applications", "get", "a/b")));
}

#[test]
fn a_project_s_denial_holds_beside_others() {
    let mut policies = Policies::read(CSV, "", MatchMode::Glob).unwrap();
    policies
        .add(
            "p, proj:shop:ci, applications, sync, shop/web, allow",
            MatchMode::Glob,
        )
        .unwrap();
    assert!(ask(
        &policies,
        &["proj:shop:ci"],
        ("applications", "sync", "shop/web")
    ));
    assert!(!ask(
        &policies,
        &["proj:shop:ci"],
        ("applications", "sync", "shop/api")
    ));
}

#[test]
fn expressions_instead_of_globs() {
    let policies = Policies::read(
        "p, bob, applications, ^(get|sync)$, ^shop/.*, allow",
        "",
        MatchMode::Regex,
    )
    .unwrap();
    assert!(ask(&policies, &["bob"], ("applications", "sync", "shop/web")));
    assert!(!ask(&policies, &["bob"], ("applications", "delete", "shop/web")));
    assert!(
        ask(&policies, &["admin"], ("applications", "sync", "shop/web")),
        "built-in policies are globs all the same"
    );
}

#[test]
fn there_is_an_end_to_policies() {
    let many = "p, a, b, c, d, allow\n".repeat(501);
    assert!(Policies::read(&many, "", MatchMode::Glob).is_ok());
    let error = Policies::read(&many, "", MatchMode::Regex).unwrap_err();
    assert_eq!(
        (error.line, error.reason.as_str()),
        (501, "there are more than 500 policies")
    );
}

#[test]
fn faults_name_their_line() {
    let cases = [
        ("\n\np, a, b, c, d", "line 3: expected p, SUBJECT"),
        ("g, a", "line 1: expected g, SUBJECT, ROLE"),
        ("p, a, b, c, d, maybe", "neither allow nor deny"),
        ("q, a", "begins with p or g"),
        ("p, \"a, b", "a quote is not closed"),
    ];
    for (csv, expected) in cases {
        let error = Policies::read(csv, "", MatchMode::Glob).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Policies::read("p, a, (, c, d, allow", "", MatchMode::Regex).is_err());
}
