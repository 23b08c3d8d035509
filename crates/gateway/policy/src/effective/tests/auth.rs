//! AuthPolicies on a Gateway, its listener, a route and a rule of it, down to the plans that they come to.

use super::*;
use crate::auth::{AuthPlan, Settings, compile};
use crate::expression::Predicate;

/// An AuthPolicy: name, when it was made, target, how its rules are written, and they themselves.
fn auth(name: &str, day: u8, target: &str, how: &str, mut proper: Value) -> Policy {
    let (kind, target, section) = match target.split('/').collect::<Vec<_>>()[..] {
        ["gw"] => ("Gateway", "gw", None),
        ["gw", section] => ("Gateway", "gw", Some(section)),
        [route] => ("HTTPRoute", route, None),
        [route, section] => ("HTTPRoute", route, Some(section)),
        _ => unreachable!(),
    };
    let namespace = if kind == "Gateway" { "infra" } else { "team" };
    let mut spec = match how.split_once(' ') {
        Some((part, strategy)) => {
            proper["strategy"] = json!(strategy);
            json!({part: proper})
        }
        None => proper,
    };
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": target});
    if let Some(section) = section {
        spec["targetRef"]["sectionName"] = json!(section);
    }
    let object = json!({
        "metadata": {"name": name, "namespace": namespace,
                     "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": spec});
    Policy::read("root", Kind::AuthPolicy, &object)
}

/// Authentication rules by these names: `key` is a key, `anybody` is everybody.
fn ways(names: &[&str]) -> Value {
    let one = |name: &str| match name {
        "anybody" => json!({"anonymous": {}}),
        _ => json!({"apiKey": {"selector": {"matchLabels": {"app": name}}}}),
    };
    let all = names.iter().map(|name| ((*name).to_owned(), one(name)));
    json!({"rules": {"authentication": all.collect::<serde_json::Map<_, _>>()}})
}

fn may(mut spec: Value, name: &str, predicate: &str) -> Value {
    spec["rules"]["authorization"][name] =
        json!({"patternMatching": {"patterns": [{"predicate": predicate}]}});
    spec
}

fn on(mut spec: Value, predicate: &str) -> Value {
    spec["when"] = json!([{"predicate": predicate}]);
    spec
}

/// `when | authentication | authorization`, each rule with the policy that it is from.
fn shown(plan: &AuthPlan) -> String {
    let when = match &plan.when {
        Predicate::Cel(cel) => cel.source(),
        _ => "always",
    };
    let ways = plan.authentication.iter().map(|it| &it.common);
    let may = plan.authorization.iter().map(|it| &it.common);
    let names = |all: &mut dyn Iterator<Item = &crate::auth::Common>| {
        let each = all.map(|it| format!("{}@{}", it.name, it.source.name));
        each.collect::<Vec<_>>().join(" ")
    };
    format!(
        "{when} | {} | {}",
        names(&mut ways.into_iter()),
        names(&mut may.into_iter())
    )
}

fn plans(policies: &[Policy]) -> Vec<String> {
    let decided = decide(policies, &topology());
    let paths = topology().paths;
    let each = paths.iter().map(|path| match decided.effective.get(path) {
        None => "-".to_owned(),
        Some(effective) => {
            let plan = compile(effective, &[], &Settings::default());
            assert_eq!(plan.problems, [], "{policies:?}");
            shown(&plan)
        }
    });
    each.collect()
}

#[test]
fn auth_policies_are_merged_from_the_most_specific_up() {
    let deny = || may(json!({}), "nobody", "false");
    // Of the rule that has a name, and of the other one.
    for (reason, policies, named, other) in [
        (
            "a Gateway's denial closes every route",
            vec![auth("g", 1, "gw", "defaults atomic", deny())],
            "always | anonymous@g | nobody@g",
            "always | anonymous@g | nobody@g",
        ),
        (
            "defaults give way as a whole, the denial too",
            vec![
                auth("g", 1, "gw", "defaults atomic", deny()),
                auth("r", 2, "shop", "bare", ways(&["key"])),
            ],
            "always | key@r | ",
            "always | key@r | ",
        ),
        (
            "a bare policy of a Gateway is a default",
            vec![
                auth(
                    "g",
                    1,
                    "gw",
                    "bare",
                    on(ways(&["key"]), "request.method == 'PUT'"),
                ),
                auth("r", 2, "shop", "bare", ways(&["anybody"])),
            ],
            "always | anybody@r | ",
            "always | anybody@r | ",
        ),
        (
            "merged defaults add what the route does not name, in other sections, too",
            vec![
                auth(
                    "g",
                    1,
                    "gw",
                    "defaults merge",
                    may(ways(&["key", "other"]), "nobody", "false"),
                ),
                auth("r", 2, "shop", "bare", ways(&["key"])),
            ],
            "always | key@r other@g | nobody@g",
            "always | key@r other@g | nobody@g",
        ),
        (
            "a condition of merged defaults counts where the route has none",
            vec![
                auth(
                    "g",
                    1,
                    "gw",
                    "defaults merge",
                    on(ways(&["other"]), "request.method == 'PUT'"),
                ),
                auth("r", 2, "shop", "bare", ways(&["key"])),
            ],
            "request.method == 'PUT' | key@r other@g | ",
            "request.method == 'PUT' | key@r other@g | ",
        ),
        (
            "and not where it has one",
            vec![
                auth(
                    "g",
                    1,
                    "gw",
                    "defaults merge",
                    on(ways(&["other"]), "request.method == 'PUT'"),
                ),
                auth(
                    "r",
                    2,
                    "shop",
                    "bare",
                    on(ways(&["key"]), "request.method == 'GET'"),
                ),
            ],
            "request.method == 'GET' | key@r other@g | ",
            "request.method == 'GET' | key@r other@g | ",
        ),
        (
            "overrides leave nothing of the route, its condition neither",
            vec![
                auth("g", 1, "gw", "overrides atomic", ways(&["key"])),
                auth(
                    "r",
                    2,
                    "shop",
                    "bare",
                    on(may(ways(&["anybody"]), "all", "true"), "request.method == 'PUT'"),
                ),
            ],
            "always | key@g | ",
            "always | key@g | ",
        ),
        (
            "merged overrides keep what they do not name",
            vec![
                auth(
                    "g",
                    1,
                    "gw",
                    "overrides merge",
                    on(may(ways(&["key"]), "some", "true"), "request.method == 'GET'"),
                ),
                auth(
                    "r",
                    2,
                    "shop",
                    "bare",
                    on(
                        may(ways(&["key", "anybody"]), "all", "true"),
                        "request.method == 'PUT'",
                    ),
                ),
            ],
            "request.method == 'GET' | anybody@r key@g | all@r some@g",
            "request.method == 'GET' | anybody@r key@g | all@r some@g",
        ),
        (
            "a rule's policy takes the place of its route's there alone",
            vec![
                auth("r", 1, "shop", "bare", ways(&["key"])),
                auth("s", 2, "shop/get", "bare", ways(&["anybody"])),
            ],
            "always | anybody@s | ",
            "always | key@r | ",
        ),
        (
            "a Gateway's override counts before its listener's default and the rule's own",
            vec![
                auth("g", 1, "gw", "overrides atomic", ways(&["key"])),
                auth("l", 2, "gw/web", "defaults atomic", ways(&["other"])),
                auth("s", 3, "shop/get", "bare", ways(&["anybody"])),
            ],
            "always | key@g | ",
            "always | key@g | ",
        ),
        (
            "another listener's does not reach it",
            vec![auth("l", 1, "gw/api", "overrides atomic", ways(&["key"]))],
            "-",
            "-",
        ),
    ] {
        assert_eq!(plans(&policies), [named, other], "{reason}");
    }
}

#[test]
fn who_is_overridden_is_told() {
    let (over, under) = (
        auth("g", 1, "gw", "overrides atomic", ways(&["key"])),
        auth("r", 2, "shop", "bare", ways(&["anybody"])),
    );
    let decided = decide(&[over.clone(), under.clone()], &topology());
    let told = |policy: &Policy| match &decided.standing[&policy.key] {
        Standing::Attached {
            affects,
            overridden_by,
        } => {
            let by: Vec<&str> = overridden_by.iter().map(|key| key.name.as_str()).collect();
            format!("{} {}", affects.len(), by.join(" "))
        }
        Standing::Refused(refusal) => format!("{refusal:?}"),
    };
    assert_eq!((told(&over).as_str(), told(&under).as_str()), ("2 ", "0 g"));
}
