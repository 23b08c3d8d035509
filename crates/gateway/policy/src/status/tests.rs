//! Upstream's words for every way a policy can fare.

use fairway_gateway_routes::table::{ListenerKey, RuleKey};

use super::*;

fn key(name: &str) -> PolicyKey {
    PolicyKey {
        workspace: "root".into(),
        kind: Kind::AuthPolicy,
        namespace: "team".into(),
        name: name.into(),
    }
}

fn path() -> RuleKey {
    RuleKey {
        listener: ListenerKey {
            workspace: "root".into(),
            namespace: "infra".into(),
            gateway: "gw".into(),
            listener: "web".into(),
        },
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: "shop".into(),
        rule: 0,
        section: None,
    }
}

#[test]
fn conditions_say_what_upstream_says() {
    let attached = |affects: usize, by: &[&str]| Standing::Attached {
        affects: vec![path(); affects],
        overridden_by: by.iter().map(|name| key(name)).collect(),
    };
    let problem = |what| Problem {
        policy: key("a"),
        rule: "authorization#x".into(),
        what,
    };
    let waiting = DataPlane {
        waiting_for: vec![component(&path())],
        ..DataPlane::default()
    };
    let troubled = DataPlane {
        troubles: vec!["the key server is away".into()],
        ..DataPlane::default()
    };
    let idle = DataPlane {
        asks_nothing: true,
        ..DataPlane::default()
    };
    let gaps = DataPlane {
        waiting_for: vec![component(&path())],
        gaps: vec!["limit \"l\" counts nothing".into()],
        ..DataPlane::default()
    };
    let untried = DataPlane {
        untried: vec![component(&path())],
        troubles: vec!["the key server is away".into()],
        ..DataPlane::default()
    };
    let lets_in = DataPlane {
        lets_in: vec![component(&path())],
        ..DataPlane::default()
    };
    let silent = DataPlane {
        silent: vec![component(&path())],
        ..DataPlane::default()
    };
    let ready = DataPlane::default();
    let not_found = Standing::Refused(Refusal::TargetNotFound { name: "shop".into() });
    let conflicted = Standing::Refused(Refusal::Conflicted { by: key("older") });
    for (standing, problems, plane, expected) in [
        (
            attached(1, &[]),
            vec![],
            &idle,
            "Enforced False Unknown AuthPolicy has no rules, so it asks nothing of any request",
        ),
        (
            not_found,
            vec![],
            &ready,
            "Accepted False TargetNotFound AuthPolicy target shop was not found",
        ),
        (
            conflicted,
            vec![],
            &ready,
            "Accepted False Conflicted AuthPolicy is conflicted by team/older: it was there before",
        ),
        (
            attached(0, &[]),
            vec![],
            &ready,
            "Enforced False Unknown AuthPolicy is not in the path to any existing routes",
        ),
        (
            attached(0, &["x", "y"]),
            vec![],
            &ready,
            "Enforced False Overridden AuthPolicy is overridden by [team/x team/y]",
        ),
        (
            attached(1, &[]),
            vec![
                problem(Fault::Cel("no".into())),
                problem(Fault::Invalid("worse".into())),
            ],
            &waiting,
            "Enforced False InvalidCelExpression validation issues: [authorization#x: no]; requests are refused until this is mended",
        ),
        (
            attached(1, &[]),
            vec![problem(Fault::Unsupported("spicedb".into()))],
            &ready,
            "Enforced False Unknown AuthPolicy has encountered some issues: authorization#x: spicedb is not supported; requests are refused until this is mended",
        ),
        (
            attached(1, &[]),
            vec![],
            &waiting,
            "Enforced False Unknown AuthPolicy waiting for the following components to sync: [Gateway (infra/gw) listener web HTTPRoute (team/shop) rule 1]",
        ),
        (
            attached(1, &[]),
            vec![],
            &ready,
            "Enforced True Enforced AuthPolicy has been successfully enforced",
        ),
        (
            attached(1, &["x"]),
            vec![],
            &ready,
            "Enforced True Enforced AuthPolicy has been partially enforced",
        ),
        (
            attached(1, &[]),
            vec![],
            &troubled,
            "Enforced True Enforced AuthPolicy has been successfully enforced, but: the key server is away",
        ),
        (
            attached(1, &[]),
            vec![],
            &gaps,
            "Enforced False Unknown AuthPolicy has encountered some issues: limit \"l\" counts nothing",
        ),
        (
            attached(1, &[]),
            vec![],
            &untried,
            "Enforced True Enforced AuthPolicy has been successfully enforced (the data plane has its guard, but no request could be made up to try it: [Gateway (infra/gw) listener web HTTPRoute (team/shop) rule 1]), but: the key server is away",
        ),
        (
            attached(1, &[]),
            vec![],
            &lets_in,
            "Enforced True Enforced AuthPolicy has been successfully enforced (the data plane has its guard, but no refusal could be seen, because it lets a request without credentials through: [Gateway (infra/gw) listener web HTTPRoute (team/shop) rule 1])",
        ),
        (
            attached(1, &[]),
            vec![],
            &silent,
            "Enforced True Enforced AuthPolicy has been successfully enforced (the data plane has its guard, but no refusal could be seen, because whom it asks did not answer in time: [Gateway (infra/gw) listener web HTTPRoute (team/shop) rule 1])",
        ),
    ] {
        let conditions = conditions(Kind::AuthPolicy, &standing, &problems, plane);
        let last = conditions.last().unwrap();
        let found = format!(
            "{} {} {} {}",
            last.r#type,
            last.status(),
            last.reason,
            last.message
        );
        assert_eq!(found, expected);
        let is_accepted = matches!(standing, Standing::Attached { .. });
        assert_eq!(conditions.len(), if is_accepted { 2 } else { 1 });
    }
}
