//! Dependency direction: binary → servers → adapters → pure crates → wire types, and domains apart from each other.
//! Tests may reach wherever they like; what is built and shipped may not.

use super::Problem;
use super::workspace::{Crate, Layer, Workspace};

pub(super) fn check(workspace: &Workspace) -> Vec<Problem> {
    let mut problems = Vec::new();
    for from in &workspace.crates {
        for to in from.members.iter().filter_map(|name| workspace.named(name)) {
            if let Some(why) = objection(from, to) {
                let message = format!("`{}` must not depend on `{}`: {why}", from.name, to.name);
                problems.push(Problem::new(from.directory.join("Cargo.toml"), 0, message));
            }
        }
    }
    problems
}

/// Why one crate may not depend on another, or nothing when it may.
fn objection(from: &Crate, to: &Crate) -> Option<String> {
    match (from.layer, to.layer) {
        (Layer::Tool, _) => return None,
        (_, Layer::Tool) => {
            return Some("chores, benchmarks and test kits are not part of the product".to_owned());
        }
        (_, Layer::Binary) => return Some("only the binary wires the parts".to_owned()),
        (Layer::Server, Layer::Server) => {
            return Some("servers and engines meet in objects, not in calls".to_owned());
        }
        (higher, lower) if higher < lower => {
            let direction = "dependencies point binary → server → adapter → pure → api";
            return Some(format!("{direction}, and this goes {higher:?} → {lower:?}"));
        }
        _ => {}
    }
    if from.layer == Layer::Binary {
        return None;
    }
    match (from.domain(), to.domain()) {
        (_, None) => None,
        (Some(own), Some(other)) if own == other => None,
        // The kernel's decisions (schemas, patches) are the platform's language; its machinery is not.
        (_, Some("kernel")) if to.pure => None,
        (_, Some("kernel")) => Some("outside the kernel, the only way in is a kube::Client".to_owned()),
        // Whoever explains what all domains did reads their words as they do.
        (Some("why"), Some(_)) if to.pure => None,
        (Some(own), Some(other)) => Some(format!("the domains `{own}` and `{other}` meet in objects only")),
        (None, Some(other)) => Some(format!("what all share must not know the domain `{other}`")),
    }
}
