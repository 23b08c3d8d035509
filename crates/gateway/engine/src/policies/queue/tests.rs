//! Policies that ask silent servers beside one that does not, and rules that nobody can make a request for.

use fairway_controller::fake::Script;
use fairway_gateway_gatekeeper::{NoRealms, Realms};
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_gateway_policy::status::Condition;
use fairway_gateway_routes as routes;
use fairway_gateway_routes::table::{ListenerKey, Table};
use fairway_outbound::{AllowedHosts, Outbound};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::Enforcer;
use super::super::decide::{decide, tests::built, ways};
use super::super::prober::Round;
use super::super::told::conditions_of;
use super::*;
use crate::plane::{Acknowledged, Explained, Guards, Probe};

/// Answers for the paths of some rules, after a while, and never for others.
#[derive(Default)]
struct Plane {
    /// With whether it refuses.
    rules: BTreeMap<String, (RuleKey, bool)>,
    takes: Duration,
}

impl Plane {
    fn new(rules: impl IntoIterator<Item = (String, (RuleKey, bool))>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl DataPlane for Plane {
    fn serve(&self, _: Arc<Table>, _: Guards) -> BoxFuture<'_, Acknowledged> {
        std::future::ready(Acknowledged::default()).boxed()
    }

    fn explain(&self, _: Probe) -> BoxFuture<'_, Explained> {
        std::future::ready(Explained::default()).boxed()
    }

    fn table(&self) -> Arc<Table> {
        Arc::default()
    }

    fn probe<'p>(&'p self, _: &'p ListenerKey, request: Probe) -> BoxFuture<'p, Option<(RuleKey, bool)>> {
        match self.rules.get(request.uri.path()).cloned() {
            Some(found) => async move {
                tokio::time::sleep(self.takes).await;
                Some(found)
            }
            .boxed(),
            None => std::future::pending().boxed(),
        }
    }
}

fn keys() -> Value {
    json!({"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"app": "api"}}}}}})
}

/// A route with such paths, and an AuthPolicy `p00`, `p01`, ... by keys for each of its rules.
fn round(paths: &[Value]) -> Round {
    round_of(paths, |_| json!({"rules": keys()}))
}

/// The same with other policies.
fn round_of(paths: &[Value], spec: impl Fn(usize) -> Value) -> Round {
    let rules: Vec<Value> = (paths.iter())
        .map(|path| json!({"matches": [{"path": path}], "backendRefs": [{"name": "backend", "port": 8080}]}))
        .collect();
    let (observed, table) = built(routes::Kind::HttpRoute, &json!(rules));
    let policies: Vec<Policy> = (0..paths.len())
        .map(|at| {
            let mut spec = spec(at);
            spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api",
                "sectionName": format!("rule-{}", at + 1)});
            let annotations = spec["annotations"].take();
            let metadata = json!({"namespace": "n", "name": format!("p{at:02}"), "annotations": annotations});
            let object = json!({"metadata": metadata, "spec": spec});
            Policy::read("tenant", Kind::AuthPolicy, &object)
        })
        .collect();
    let ways = ways(&table);
    let mut decision = decide(&policies.iter().collect::<Vec<_>>(), &observed, &ways);
    let outbound = Arc::new(Outbound::new(AllowedHosts::parse("loopback").unwrap()));
    let outside = (outbound, Arc::new(NoRealms) as Arc<dyn Realms>);
    let mut enforcer = Enforcer::new(Script::new().clients(), outside, false);
    enforcer.take(&mut decision);
    Round {
        decision,
        ways,
        guards: enforcer.kept(),
        conditions: BTreeMap::new(),
        generations: BTreeMap::new(),
    }
}

fn enforced<'c>(conditions: &'c BTreeMap<PolicyKey, Vec<Condition>>, name: &str) -> &'c Condition {
    let own = conditions.iter().find(|(key, _)| key.name == name);
    own.unwrap().1.iter().find(|it| it.r#type == "Enforced").unwrap()
}

#[tokio::test]
async fn no_policy_waits_for_good_behind_silent_servers() {
    let paths: Vec<Value> = (0..13).map(|at| json!({"value": format!("/r{at:02}")})).collect();
    let round = round(&paths);
    let last = round.ways.keys().find(|rule| rule.rule == 12).unwrap();
    // Only the last one in the order of names has an answer.
    let plane = Plane::new([("/r12".to_owned(), (last.clone(), true))]);
    let mut answers = Answers::default();
    for (turn, expected) in [
        (1, "False"),
        (2, "True"),
        // Others waited longer than it, and what is known of it is not forgotten.
        (3, "True"),
        (4, "True"),
    ] {
        let begun = Instant::now();
        let (conditions, is_whole) = conditions_of(&plane, &round, &mut answers).await;
        assert!(!is_whole, "turn {turn}: there is something to be asked again");
        assert_eq!(enforced(&conditions, "p12").status(), expected, "turn {turn}");
        assert_eq!(enforced(&conditions, "p00").status(), "False", "turn {turn}");
        let took = begun.elapsed();
        assert!(took < WORKSPACE * 2, "turn {turn} took {took:?}");
    }
}

#[tokio::test]
async fn rules_that_could_not_be_tried_are_told() {
    let paths = [
        json!({"value": "/plain"}),
        json!({"type": "RegularExpression", "value": "/a+"}),
    ];
    let round = round(&paths);
    let plain = round.ways.keys().find(|rule| rule.rule == 0).unwrap();
    let plane = Plane::new([("/plain".to_owned(), (plain.clone(), true))]);
    let (conditions, is_whole) = conditions_of(&plane, &round, &mut Answers::default()).await;
    assert!(is_whole);
    for (name, is_tried) in [("p00", true), ("p01", false)] {
        let told = enforced(&conditions, name);
        assert!(told.is_true, "{name}: {}", told.message);
        let says = told.message.contains("no request could be made up to try it");
        assert_eq!(says, !is_tried, "{name}: {}", told.message);
    }
}

/// More rules than one turn has time for: once each has its answer, nobody has to be asked again.
#[tokio::test]
async fn a_workspace_with_many_rules_comes_to_rest() {
    let paths: Vec<Value> = (0..100)
        .map(|at| json!({"value": format!("/r{at:02}")}))
        .collect();
    let round = round(&paths);
    let rules = (round.ways.keys()).map(|rule| (format!("/r{:02}", rule.rule), (rule.clone(), true)));
    let plane = Plane {
        takes: Duration::from_millis(150),
        ..Plane::new(rules)
    };
    let mut answers = Answers::default();
    let (_, is_whole) = conditions_of(&plane, &round, &mut answers).await;
    assert!(!is_whole, "not all had their turn");
    let mut turns = 1;
    while !conditions_of(&plane, &round, &mut answers).await.1 {
        turns += 1;
        assert!(turns < 10, "it goes on for ever");
    }
}

#[tokio::test]
async fn what_a_policy_refuses_is_seen_to_be_refused() {
    let deny =
        json!({"authorization": {"nobody": {"patternMatching": {"patterns": [{"predicate": "false"}]}}}});
    let anonymous = json!({"authentication": {"anybody": {"anonymous": {}}}});
    let with = |mut rules: Value, more: &Value| {
        rules["authorization"] = more["authorization"].clone();
        json!({"rules": rules})
    };
    let on_get = |rules: &Value| json!({"when": [{"predicate": "request.method == 'GET'"}], "rules": rules});
    let on_put = |rules: &Value| json!({"when": [{"predicate": "request.method == 'PUT'"}], "rules": rules});
    for (spec, refuses, status, note, reason) in [
        (
            json!({"rules": keys()}),
            true,
            "True",
            "",
            "keys, and it is refused",
        ),
        (
            json!({"rules": keys()}),
            false,
            "False",
            "waiting",
            "keys, and it is not",
        ),
        (json!({"rules": deny}), true, "True", "", "nobody may"),
        (
            json!({"rules": deny}),
            false,
            "False",
            "waiting",
            "nobody may, and it is let through",
        ),
        (
            with(anonymous.clone(), &deny),
            true,
            "True",
            "",
            "anonymous, and nobody may",
        ),
        (
            with(anonymous.clone(), &deny),
            false,
            "False",
            "waiting",
            "the same, and it is let through",
        ),
        (
            json!({"rules": anonymous}),
            false,
            "True",
            "lets a request without credentials through",
            "everybody may",
        ),
        (
            on_get(&keys()),
            true,
            "True",
            "",
            "it applies to what it is tried with",
        ),
        (
            on_get(&keys()),
            false,
            "False",
            "waiting",
            "the same, and it is let through",
        ),
        (
            on_put(&keys()),
            false,
            "True",
            "lets a request without credentials through",
            "it applies to others",
        ),
    ] {
        let round = round_of(&[json!({"value": "/r"})], |_| spec.clone());
        let rule = round.ways.keys().next().unwrap();
        let plane = Plane::new([("/r".to_owned(), (rule.clone(), refuses))]);
        let (conditions, is_whole) = conditions_of(&plane, &round, &mut Answers::default()).await;
        assert!(is_whole, "{reason}");
        let told = enforced(&conditions, "p00");
        assert_eq!(told.status(), status, "{reason}: {}", told.message);
        assert!(told.message.contains(note), "{reason}: {}", told.message);
        if note.is_empty() {
            assert!(!told.message.contains('('), "{reason}: {}", told.message);
        }
    }
}

/// Whom an anonymous visitor's policy asks is away: that is no proof of anything, and asked again.
#[tokio::test]
async fn whom_a_policy_asks_may_be_silent() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", nobody.local_addr().unwrap());
    let spec = json!({"rules": {
        "authentication": {"anybody": {"anonymous": {}}},
        "metadata": {"more": {"http": {"url": url}}},
    }});
    let round = round_of(&[json!({"value": "/r"})], |_| spec.clone());
    let rule = round.ways.keys().next().unwrap();
    let plane = Plane::new([("/r".to_owned(), (rule.clone(), true))]);
    let (conditions, is_whole) = conditions_of(&plane, &round, &mut Answers::default()).await;
    let told = enforced(&conditions, "p00");
    assert!(
        !is_whole && told.message.contains("did not answer in time"),
        "{}",
        told.message
    );
}

#[tokio::test]
async fn what_an_auth_policy_cannot_choose_is_told() {
    let annotations = json!({"gateway.fairway.dev/failure-mode": "allow"});
    for (annotations, says) in [(annotations, true), (json!({}), false)] {
        let paths = [json!({"value": "/r"})];
        let round = round_of(&paths, |_| json!({"rules": keys(), "annotations": annotations}));
        let rule = round.ways.keys().next().unwrap();
        let plane = Plane::new([("/r".to_owned(), (rule.clone(), true))]);
        let (conditions, _) = conditions_of(&plane, &round, &mut Answers::default()).await;
        let told = enforced(&conditions, "p00");
        let is_told = told.message.contains("always refuses whom it cannot judge");
        assert_eq!((told.is_true, is_told), (true, says), "{}", told.message);
    }
}
