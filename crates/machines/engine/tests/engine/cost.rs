//! What the engine costs: nothing goes on by itself, and a start takes a few passes.

use std::time::Duration;

use serde_json::json;

use crate::harness::{At, World, eventually};

const CONTROLLERS: [&str; 5] = [
    "virtualmachine",
    "machine-scheduler",
    "machine-nodes",
    "machine-migrations",
    "machine-evacuation",
];

impl World {
    fn all_passes(&self) -> u64 {
        let results = ["success", "error", "requeue", "conflict"];
        let each = CONTROLLERS
            .iter()
            .flat_map(|it| results.map(|result| self.passes(it, result)));
        each.sum()
    }
}

#[tokio::test]
async fn nothing_goes_on_by_itself() {
    let world = World::start(At::Root).await;
    for name in ["a", "b", "c"] {
        world.machine(name, json!({})).await;
    }
    for name in ["a", "b", "c"] {
        world.shows(name, "Running").await;
    }
    let mut before = world.all_passes();
    eventually("all is quiet", || {
        let now = world.all_passes();
        let quiet = now == before;
        before = now;
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            quiet
        }
    })
    .await;
    let passes = world.passes("virtualmachine", "success") + world.passes("virtualmachine", "conflict");
    println!(
        "{passes} passes over three machines, {} in all",
        world.all_passes()
    );
    assert!(passes <= 60, "{passes} passes over three machines");
    world.end().await;
}
