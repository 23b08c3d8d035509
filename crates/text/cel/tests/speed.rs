//! How long compiling and evaluating take: `cargo test --release -p fairway-text-cel --test speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use fairway_text_cel::{Activation, DeclType, Env, eval};
use serde_json::json;

#[test]
#[ignore = "prints times, decides nothing"]
fn speed() {
    let schema = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "min": {"type": "integer"}, "name": {"type": "string", "maxLength": 63},
        "items": {"type": "array", "maxItems": 100, "items": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 63}, "value": {"type": "integer"}}}}}});
    let items: Vec<_> = (0..50)
        .map(|n| json!({"name": format!("item-{n}"), "value": n}))
        .collect();
    let object = json!({"replicas": 3, "min": 1, "name": "web", "items": items});
    let decl = DeclType::from_json_schema(&schema, false).unwrap();
    let env = Env::new().with_schema_variable("self", &decl);
    for expr in [
        "self.min <= self.replicas",
        "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "!has(self.nothing) || self.replicas > 0"
            .replace("nothing", "min")
            .as_str(),
        "self.items.all(i, i.value >= 0 && i.name.startsWith('item-'))",
        "self.items.map(i, i.name).size() == 50",
        "self.items.all(i, self.items.exists_one(j, j.name == i.name))",
    ] {
        let rounds = 200;
        let start = Instant::now();
        for _ in 0..rounds {
            env.compile(expr).unwrap();
        }
        let compiling = start.elapsed() / rounds;
        let program = env.compile(expr).unwrap();
        let (start, mut cost) = (Instant::now(), 0);
        for _ in 0..rounds {
            let mut budget = 10_000_000;
            let activation = Activation::new().bind_schema_value("self", &object, &decl);
            assert_eq!(
                eval(&program, &activation, &mut budget).unwrap().as_bool(),
                Some(true)
            );
            cost = 10_000_000 - budget;
        }
        println!(
            "{expr}: compiling {compiling:?}, evaluating {:?}, cost {cost}",
            start.elapsed() / rounds
        );
    }
}
