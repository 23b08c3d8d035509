//! What a plan takes over from the one before: everything that was made of the same rule, guard and clusters.

use fairway_gateway_guard::{Asked, Guard, Judgement, Passage, Step, Verdict};
use fairway_gateway_routes::settings::CONTROLLER;
use fairway_gateway_routes::{Kind, Memo, Observed, Settings, build_with};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::*;

struct Open;

impl Guard for Open {
    fn judge<'a>(&'a self, _: &'a Asked<'a>) -> Judgement<'a> {
        Judgement::Now(Verdict::Allow(Passage::default()))
    }

    fn explain<'a>(&'a self, _: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async { (Verdict::Allow(Passage::default()), Vec::new()) })
    }
}

fn put(observed: &mut Observed, kind: Kind, name: &str, spec: &Value) {
    let object = json!({"metadata": {"namespace": "n", "name": name}, "spec": spec});
    observed.put("root", kind, &object);
}

fn route(path: &str, service: &str) -> Value {
    json!({
        "parentRefs": [{"name": "web"}],
        "rules": [{"matches": [{"path": {"value": path}}], "backendRefs": [{"name": service, "port": 80}]}],
    })
}

#[test]
fn what_was_made_of_the_same_is_taken_over() {
    let mut observed = Observed::default();
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    let gateway = json!({"gatewayClassName": "fairway", "listeners": [listener]});
    put(&mut observed, Kind::Gateway, "web", &gateway);
    for service in ["one", "two"] {
        let ports = json!({"ports": [{"port": 80}]});
        put(&mut observed, Kind::Service, service, &ports);
    }
    for (name, service) in [("a", "one"), ("b", "one"), ("c", "two")] {
        let spec = route(&format!("/{name}"), service);
        put(&mut observed, Kind::HttpRoute, name, &spec);
    }
    let settings = Settings {
        classes: [("fairway".to_owned(), CONTROLLER.to_owned())].into(),
        ..Settings::default()
    };
    let mut memo = Memo::default();
    let mut table = |observed: &Observed| build_with(observed, &settings, &mut memo).table;
    let (metrics, marks) = (Metrics::new(100), Marks::new(&[0; 32]));
    let (breaker, outliers) = (Breaker::default(), Outliers::default());
    let (mut before, mut guards) = (Plan::default(), Guards::default());
    // The routes whose rules were made anew.
    let mut next = |table: &Table, guards: &Guards| -> Vec<&'static str> {
        let sources = Sources {
            guards,
            metrics: &metrics,
            marks: &marks,
            breaker: &breaker,
            outliers: &outliers,
            workers: 1,
        };
        let (plan, problems) = compile(Arc::new(table.clone()), &before, &sources);
        assert!(problems.is_empty());
        let is_known = |plan: &Arc<RulePlan>| before.rules.values().any(|known| Arc::ptr_eq(known, plan));
        let is_made = |name: &&'static str| {
            let mut all = plan.rules.values();
            all.any(|rule| rule.rule.key.name == *name && !is_known(rule))
        };
        let made = ["a", "b", "c"].into_iter().filter(is_made).collect();
        before = plan;
        made
    };
    let first = table(&observed);
    assert_eq!(next(&first, &guards), ["a", "b", "c"], "nothing is known yet");
    assert!(next(&table(&observed), &guards).is_empty(), "nothing has changed");
    let other = route("/other", "one");
    put(&mut observed, Kind::HttpRoute, "b", &other);
    let mut latest = table(&observed);
    assert_eq!(next(&latest, &guards), ["b"], "a route");
    let key = key_of(&latest, "c");
    guards.insert(key.clone(), Arc::new(Open));
    assert_eq!(next(&latest, &guards), ["c"], "a guard where there was none");
    let same = guards.clone();
    assert!(next(&latest, &same).is_empty(), "the same guard");
    guards.insert(key, Arc::new(Open));
    assert_eq!(next(&latest, &guards), ["c"], "another guard");
    let two = latest.clusters.keys().find(|key| key.service == "two").cloned();
    let gone = latest.clusters.remove(&two.unwrap());
    assert_eq!(next(&latest, &guards), ["c"], "what it leads to is gone");
    let gone = gone.unwrap();
    latest.clusters.insert(gone.key.clone(), gone);
    assert_eq!(next(&latest, &guards), ["c"], "and is there again");
}

fn key_of(table: &Table, route: &str) -> table::RuleKey {
    let Some(Door::Http(names)) = table.doors.values().next() else {
        panic!("{:?}", table.doors)
    };
    let hosts = names.iter().flat_map(|(_, listener)| listener.routes.iter());
    let mut entries = hosts.flat_map(|(_, entries)| entries.iter());
    let found = entries.find(|entry| entry.rule.key.name == route).unwrap();
    found.rule.key.clone()
}
