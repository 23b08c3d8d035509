//! What projects' roles may say, and who has one.

use serde_json::json;

use super::*;
use crate::rbac::{Asker, Request};

fn shop(policies: &[&str], groups: &[&str]) -> ProjectRole {
    ProjectRole {
        name: "ci".to_owned(),
        policies: policies.iter().map(|&it| it.to_owned()).collect(),
        groups: groups.iter().map(|&it| it.to_owned()).collect(),
    }
}

#[test]
fn roles_stay_within_their_project() {
    for (policy, complaint) in [
        ("p, proj:shop:ci, applications, sync, shop/*, allow", ""),
        ("p, proj:shop:ci, applications, sync, shop/team-a/web, allow", ""),
        (
            "p,proj:shop:ci,applications,action/apps/Deployment/restart,shop/*,deny",
            "",
        ),
        (
            "p, proj:shop:ci, applications, sync, */*, allow",
            "object must be of form",
        ),
        (
            "p, proj:shop:ci, applications, sync, bank/web, allow",
            "object must be of form",
        ),
        (
            "p, proj:shop:ci, applications, sync, shop, allow",
            "object must be of form",
        ),
        (
            "p, proj:shop:ci, applications, sync, shopping/web, allow",
            "object must be of form",
        ),
        (
            "p, proj:shop:ci, applications, sync, shop/a/b/c, allow",
            "object must be of form",
        ),
        (
            "p, proj:bank:ci, applications, sync, shop/*, allow",
            "policy subject must be",
        ),
        (
            "p, role:admin, applications, sync, shop/*, allow",
            "policy subject must be",
        ),
        (
            "p, proj:shop:ci, projects, update, shop/*, allow",
            "project resource must be",
        ),
        (
            "p, proj:shop:ci, applications, fly, shop/*, allow",
            "invalid action 'fly'",
        ),
        (
            "p, proj:shop:ci, applications, sync, shop/*, maybe",
            "effect must be",
        ),
        ("g, bob, role:admin", "must be of the form"),
    ] {
        let mut all = Policies::default();
        let faults = all.add_roles("shop", &[shop(&[policy], &["red"])], MatchMode::Glob);
        match complaint {
            "" => assert!(faults.is_empty(), "{faults:?}"),
            words => {
                assert!(faults[0].contains(words), "{faults:?}");
                let asker = Asker {
                    name: "bob",
                    groups: &["red"],
                    project_role: None,
                };
                let request = Request {
                    resource: "projects",
                    action: "get",
                    object: "shop",
                };
                assert!(!all.permits(asker, request), "nothing of it is taken");
            }
        }
    }
    for name in ["", "-a", "a-", "a b", "a:b", "ä"] {
        let role = ProjectRole {
            name: name.to_owned(),
            ..ProjectRole::default()
        };
        assert_eq!(
            Policies::default()
                .add_roles("shop", &[role], MatchMode::Glob)
                .len(),
            1,
            "{name}"
        );
    }
}

#[test]
fn who_has_a_role() {
    let policies = [
        "p, proj:shop:ci, applications, sync, shop/*, allow",
        "p, proj:shop:ci, applications, sync, shop/bank, deny",
    ];
    let mut all = Policies::read(
        "p, painters, applications, get, */*, allow\ng, blue, role:readonly",
        "",
        MatchMode::Glob,
    )
    .unwrap();
    assert!(
        all.add_roles(
            "shop",
            &[shop(&policies, &["red", "\"dark, red\""])],
            MatchMode::Glob
        )
        .is_empty()
    );
    type Case<'a> = (
        &'a str,
        &'a str,
        &'a [&'a str],
        Option<(&'a str, &'a str)>,
        (&'a str, &'a str, &'a str),
        bool,
    );
    let cases: &[Case<'_>] = &[
        (
            "a member",
            "bob",
            &["red"],
            None,
            ("applications", "sync", "shop/web"),
            true,
        ),
        (
            "a group with a comma",
            "bob",
            &["dark, red"],
            None,
            ("applications", "sync", "shop/web"),
            true,
        ),
        (
            "what is denied",
            "bob",
            &["red"],
            None,
            ("applications", "sync", "shop/bank"),
            false,
        ),
        (
            "a stranger",
            "bob",
            &["green"],
            None,
            ("applications", "sync", "shop/web"),
            false,
        ),
        (
            "sees the project",
            "bob",
            &["red"],
            None,
            ("projects", "get", "shop"),
            true,
        ),
        (
            "does not change the project",
            "bob",
            &["red"],
            None,
            ("projects", "update", "shop"),
            false,
        ),
        (
            "a token",
            "proj:shop:ci",
            &[],
            Some(("shop", "ci")),
            ("applications", "sync", "shop/web"),
            true,
        ),
        (
            "a token elsewhere",
            "proj:shop:ci",
            &[],
            Some(("shop", "ci")),
            ("applications", "get", "bank/web"),
            false,
        ),
        (
            "a token of another role",
            "proj:shop:dev",
            &[],
            Some(("shop", "dev")),
            ("applications", "sync", "shop/web"),
            false,
        ),
        (
            "a token has no groups",
            "proj:shop:dev",
            &["red"],
            Some(("shop", "dev")),
            ("applications", "sync", "shop/web"),
            false,
        ),
        (
            "a user who is only called so",
            "proj:shop:ci",
            &[],
            None,
            ("applications", "sync", "shop/web"),
            false,
        ),
        (
            "groups count as members of roles",
            "bob",
            &["blue"],
            None,
            ("applications", "get", "shop/web"),
            true,
        ),
        (
            "a group is no subject of policies",
            "bob",
            &["painters"],
            None,
            ("applications", "get", "shop/web"),
            false,
        ),
        (
            "a name is",
            "painters",
            &[],
            None,
            ("applications", "get", "shop/web"),
            true,
        ),
    ];
    for (reason, name, groups, project_role, (resource, action, object), expected) in cases {
        let asker = Asker {
            name,
            groups,
            project_role: *project_role,
        };
        let request = Request {
            resource,
            action,
            object,
        };
        assert_eq!(all.permits(asker, request), *expected, "{reason}");
    }
}

#[test]
fn roles_are_read() {
    let object = json!({"spec": {"roles": [{"name": "ci", "description": "x", "policies": ["p"], "jwtTokens": [{"iat": 1}]}]}});
    assert_eq!(read(&object).unwrap(), [shop(&["p"], &[])]);
    assert!(read(&json!({"spec": {}})).unwrap().is_empty());
    assert!(read(&json!({"spec": {"roles": "x"}})).is_err());
}
