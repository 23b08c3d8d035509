//! Runs the pairs of declared and live objects of gitops-engine's own tests through our comparison.
//!
//! They come from the Go module that upstream publishes; where Go or the module cannot be reached, the suite is SKIPPED.

use anyhow::{Result, bail};
use fairway_gitops_sync::diff::{Options, three_way};
use serde_json::Value;

use crate::upstream;

const GITOPS_ENGINE: &str = "github.com/argoproj/gitops-engine@v0.7.3";

/// A pair, whether the rules of aggregated roles are ignored, and whether upstream finds a difference.
const PAIRS: &[(&str, bool, bool)] = &[
    ("aggr-clusterrole", true, false),
    ("aggr-clusterrole", false, true),
    ("deployment", false, false),
    ("elasticsearch", false, false),
    ("endpoints", false, false),
    ("grafana-clusterrole", false, false),
    ("mutatingwebhookconfig", false, false),
    ("sealedsecret", false, false),
    ("spinnaker-sa", false, false),
    ("wordpress", false, false),
];

/// Runs all pairs and prints how many passed.
pub(crate) fn run() -> Result<()> {
    let module = match upstream::go_module(GITOPS_ENGINE) {
        Ok(module) => module,
        Err(error) => {
            println!("SKIPPED: gitops-engine cannot be fetched: {error:#}");
            return Ok(());
        }
    };
    let folder = module.join("pkg/diff/testdata");
    let mut failed = 0;
    for (name, ignore_aggregated_roles, expected) in PAIRS {
        let read = |side: &str| upstream::json(&folder.join(format!("{name}-{side}.json")));
        let options = Options {
            ignore_aggregated_roles: *ignore_aggregated_roles,
            ..Options::default()
        };
        let difference = three_way(Some(&read("config")?), Some(&read("live")?), &options);
        if difference.is_modified() != *expected {
            failed += 1;
            println!(
                "FAIL {name}: modified is {}, not {expected}",
                difference.is_modified()
            );
            show("", &difference.live, &difference.predicted);
        }
    }
    println!("{} passed, {failed} failed", PAIRS.len() - failed);
    match failed {
        0 => Ok(()),
        failed => bail!("{failed} pairs were judged differently"),
    }
}

/// Where two values differ, a line each.
fn show(path: &str, live: &Value, predicted: &Value) {
    match (live, predicted) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let [left, right] = [left, right].map(|side| side.get(key).unwrap_or(&Value::Null));
                show(&format!("{path}.{key}"), left, right);
            }
        }
        (left, right) if left != right => println!("  {path}: {left} -> {right}"),
        _ => {}
    }
}
