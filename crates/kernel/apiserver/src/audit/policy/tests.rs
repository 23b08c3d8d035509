//! What a policy says of requests, as tables.

use super::*;
use crate::query::Query;
use http::Method;

fn decide(policy: &Policy, who: &str, request: &str) -> Verdict {
    let (name, groups) = who.split_once(' ').unwrap_or((who, ""));
    let user = UserInfo::new(name, groups.split(' ').map(str::to_owned));
    let (method, url) = request.split_once(' ').unwrap();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let method: Method = method.parse().unwrap();
    let info = RequestInfo::read(&method, path, &Query::parse(query).unwrap(), |_| None).unwrap();
    policy.decide((!name.is_empty()).then_some(&user), &info)
}

/// Each case: the rule (in one line of YAML), who, the request, whether the rule matches.
const MATCHES: &[(&str, &str, &str, bool)] = &[
    ("{}", "", "GET /version", true),
    ("{users: [a]}", "a", "GET /api/v1/pods", true),
    ("{users: [a]}", "b", "GET /api/v1/pods", false),
    ("{users: [a]}", "", "GET /api/v1/pods", false),
    ("{userGroups: [g]}", "a g h", "GET /api/v1/pods", true),
    ("{userGroups: [g]}", "a h", "GET /api/v1/pods", false),
    ("{userGroups: [g]}", "", "GET /api/v1/pods", false),
    ("{verbs: [watch]}", "a", "GET /api/v1/pods?watch=1", true),
    ("{verbs: [watch]}", "a", "GET /api/v1/pods", false),
    (
        "{namespaces: [one]}",
        "a",
        "GET /api/v1/namespaces/one/pods/p",
        true,
    ),
    (
        "{namespaces: [one]}",
        "a",
        "GET /api/v1/namespaces/m/pods/p",
        false,
    ),
    ("{namespaces: ['']}", "a", "GET /api/v1/nodes", true),
    ("{namespaces: ['']}", "a", "GET /version", false),
    (
        "{resources: [{group: '', resources: [pods]}]}",
        "a",
        "GET /api/v1/pods",
        true,
    ),
    (
        "{resources: [{group: '', resources: [pods]}]}",
        "a",
        "GET /api/v1/namespaces/n/pods/p/log",
        false,
    ),
    (
        "{resources: [{group: '', resources: [pods/log]}]}",
        "a",
        "GET /api/v1/namespaces/n/pods/p/log",
        true,
    ),
    (
        "{resources: [{group: '', resources: ['pods/*']}]}",
        "a",
        "GET /api/v1/namespaces/n/pods/p/log",
        true,
    ),
    (
        "{resources: [{group: '', resources: ['pods/*']}]}",
        "a",
        "GET /api/v1/pods",
        true,
    ),
    (
        "{resources: [{group: '', resources: ['*/status']}]}",
        "a",
        "PUT /api/v1/namespaces/n/pods/p/status",
        true,
    ),
    (
        "{resources: [{group: '', resources: ['*/status']}]}",
        "a",
        "PUT /api/v1/namespaces/n/pods/p",
        false,
    ),
    (
        "{resources: [{group: '', resources: ['*']}]}",
        "a",
        "PUT /api/v1/namespaces/n/pods/p/status",
        true,
    ),
    (
        "{resources: [{group: apps}]}",
        "a",
        "GET /apis/apps/v1/deployments",
        true,
    ),
    (
        "{resources: [{group: apps}]}",
        "a",
        "GET /apis/batch/v1/jobs",
        false,
    ),
    (
        "{resources: [{group: ''}]}",
        "a",
        "GET /apis/batch/v1/jobs",
        false,
    ),
    (
        "{resources: [{group: '*'}]}",
        "a",
        "GET /apis/batch/v1/jobs",
        true,
    ),
    (
        "{resources: [{group: '', resources: [configmaps], resourceNames: [c]}]}",
        "a",
        "GET /api/v1/namespaces/n/configmaps/c",
        true,
    ),
    (
        "{resources: [{group: '', resources: [configmaps], resourceNames: [c]}]}",
        "a",
        "GET /api/v1/namespaces/n/configmaps",
        false,
    ),
    ("{nonResourceURLs: [/version]}", "a", "GET /version", true),
    ("{nonResourceURLs: [/version]}", "a", "GET /version/more", false),
    ("{nonResourceURLs: ['/openapi*']}", "a", "GET /openapi/v3", true),
    ("{nonResourceURLs: ['*']}", "a", "GET /anything", true),
    ("{nonResourceURLs: ['*']}", "a", "GET /api/v1/pods", false),
];

#[test]
fn rules_match_as_upstream() {
    for (rule, who, request, expected) in MATCHES {
        let rule = rule.replacen('{', "{level: Metadata, ", 1);
        let text = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{rule}]}}");
        let policy = Policy::parse(text.as_bytes()).unwrap();
        let verdict = decide(&policy, who, request);
        assert_eq!(
            verdict.level == Level::Metadata,
            *expected,
            "{rule}: {request} of {who:?}"
        );
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = Policy::parse(
        br#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [quiet]
- level: Request
  verbs: [create]
  omitStages: [ResponseStarted]
  omitManagedFields: false
- level: RequestResponse
  resources: [{group: ""}]
"#,
    )
    .unwrap();
    let quiet = decide(&policy, "quiet", "POST /api/v1/namespaces");
    assert_eq!(quiet.level, Level::None);
    assert!(!quiet.wants(Stage::ResponseComplete));
    let create = decide(&policy, "a", "POST /api/v1/namespaces");
    assert_eq!(
        (create.level, create.omit_managed_fields),
        (Level::Request, false)
    );
    assert!(!create.wants(Stage::RequestReceived) && !create.wants(Stage::ResponseStarted));
    assert!(create.wants(Stage::ResponseComplete) && create.wants(Stage::Panic));
    let read = decide(&policy, "a", "GET /api/v1/namespaces");
    assert_eq!(
        (read.level, read.omit_managed_fields),
        (Level::RequestResponse, true)
    );
    assert!(read.wants(Stage::ResponseStarted));
    assert_eq!(decide(&policy, "a", "GET /version"), Verdict::default());
}

#[test]
fn without_a_file_everything_but_probes_is_kept_without_bodies() {
    let policy = Policy::standard();
    assert_eq!(decide(&policy, "a", "GET /readyz").level, Level::None);
    for request in ["GET /api/v1/secrets", "POST /api/v1/namespaces", "GET /version"] {
        let verdict = decide(&policy, "", request);
        assert_eq!(verdict.level, Level::Metadata, "{request}");
        assert!(!verdict.wants(Stage::RequestReceived));
    }
}

#[test]
fn wrong_policies_are_refused_with_the_place() {
    for (text, expected) in [
        ("rules: []", "without rules"),
        (
            "rules: [{level: Metadat}]",
            "rules[0].level: Unsupported value: \"Metadat\"",
        ),
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: None}, {level: None, user: [x]}]",
            "unknown field \"rules[1].user\"",
        ),
        (
            "rules: [{level: None, resources: [{group: '', names: [x]}]}]",
            "unknown field \"rules[0].resources[0].names\"",
        ),
        (
            "rules: [{level: None, verbs: get}]",
            "rules[0].verbs: must be a list",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [x]}]",
            "rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character",
        ),
        (
            "rules: [{level: None, nonResourceURLs: ['/a*b']}]",
            "must be the final character",
        ),
        (
            "rules: [{level: None, namespaces: [one], nonResourceURLs: [/a]}]",
            "rules cannot apply to both",
        ),
        (
            "rules: [{level: None, resources: [{group: apps/v1}]}]",
            "rules[0].resources[0].group: Invalid value: \"apps/v1\"",
        ),
        (
            "rules: [{level: None, resources: [{group: '', resourceNames: [x]}]}]",
            "requires at least one resource",
        ),
        (
            "rules: [{level: None}]\nomitStages: [Begin]",
            "omitStages[0]: Invalid value: \"Begin\": allowed stages are RequestReceived,",
        ),
    ] {
        let file = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{text}");
        let error = Policy::parse(file.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{text}\n gave {error}\n not {expected}");
    }
    let error = Policy::parse(b"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]");
    assert!(error.unwrap_err().contains("audit.k8s.io/v1beta1"));
}
