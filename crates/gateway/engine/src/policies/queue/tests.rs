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

/// Answers for the paths of some rules, and never for others.
struct Plane(BTreeMap<String, RuleKey>);

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
        match self.0.get(request.uri.path()) {
            Some(rule) => std::future::ready(Some((rule.clone(), true))).boxed(),
            None => std::future::pending().boxed(),
        }
    }
}

/// A route with such paths, and an AuthPolicy `p00`, `p01`, ... for each of its rules.
fn round(paths: &[Value]) -> Round {
    let rules: Vec<Value> = (paths.iter())
        .map(|path| json!({"matches": [{"path": path}], "backendRefs": [{"name": "backend", "port": 8080}]}))
        .collect();
    let (observed, table) = built(routes::Kind::HttpRoute, &json!(rules));
    let policies: Vec<Policy> = (0..paths.len())
        .map(|at| {
            let object = json!({
                "metadata": {"namespace": "n", "name": format!("p{at:02}")},
                "spec": {
                    "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api",
                        "sectionName": format!("rule-{}", at + 1)},
                    "rules": {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"app": "api"}}}}}},
                },
            });
            Policy::read("tenant", Kind::AuthPolicy, &object)
        })
        .collect();
    let ways = ways(&table);
    let mut decision = decide(&policies.iter().collect::<Vec<_>>(), &observed, &ways);
    let outbound = Arc::new(Outbound::new(AllowedHosts::parse("").unwrap()));
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
    let plane = Plane(BTreeMap::from([("/r12".to_owned(), last.clone())]));
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
    let plane = Plane(BTreeMap::from([("/plain".to_owned(), plain.clone())]));
    let (conditions, is_whole) = conditions_of(&plane, &round, &mut Answers::default()).await;
    assert!(is_whole);
    for (name, is_tried) in [("p00", true), ("p01", false)] {
        let told = enforced(&conditions, name);
        assert!(told.is_true, "{name}: {}", told.message);
        let says = told.message.contains("no request could be made up to try it");
        assert_eq!(says, !is_tried, "{name}: {}", told.message);
    }
}
