//! `fairway vm top`: what running machines use of their hosts. Each is asked twice, and what it used of processors in between is
//! its share.

use std::time::{Duration, Instant};

use anyhow::ensure;
use fairway_gitops_view::field::{qualified_name, text};
use fairway_gitops_view::table::Table;
use futures::future::join_all;
use serde_json::{Value, json};

use super::session::{Located, Refused, Session};
use super::target::Kind;
use crate::cli::vm::show::Top;

pub(super) async fn run(session: &Session, options: &Top) -> anyhow::Result<()> {
    let interval = Duration::try_from_secs_f64(options.interval).unwrap_or_default();
    ensure!(!interval.is_zero(), "--interval must be more than 0");
    let mut instances = session
        .all(
            Kind::Instance,
            options.all_namespaces,
            options.selector.as_deref(),
        )
        .await?;
    instances.retain(|it| text(it, "/status/phase") == "Running");
    instances.sort_by_key(qualified_name);
    let before = samples(session, &instances).await;
    tokio::time::sleep(interval).await;
    let after = samples(session, &instances).await;
    let mut all = Vec::new();
    for ((vmi, before), after) in instances.iter().zip(before).zip(after) {
        match (before, after) {
            (Ok(before), Ok(after)) => all.push(used(vmi, &before, &after)),
            // One that ended meanwhile uses nothing any more.
            (_, Err(refused)) if refused.is_not_found() || refused.code == 409 => {}
            (Err(refused), _) | (_, Err(refused)) => {
                eprintln!("fairway: {}: {refused}", qualified_name(vmi));
            }
        }
    }
    let text = table(&all, options.all_namespaces);
    options.output.print(&Value::Array(all), text.trim_end());
    Ok(())
}

/// What a machine has used up to a moment.
struct Sample {
    at: Instant,
    used: Value,
}

async fn samples(session: &Session, instances: &[Value]) -> Vec<Result<Sample, Refused>> {
    let asked = instances.iter().map(async |vmi| {
        let machine = Located {
            kind: None,
            namespace: text(vmi, "/metadata/namespace").to_owned(),
            name: text(vmi, "/metadata/name").to_owned(),
        };
        let path = machine.subresource(Kind::Instance, "guestosinfo/usage");
        let used = session.get(&path).await?;
        Ok(Sample {
            at: Instant::now(),
            used,
        })
    });
    join_all(asked).await
}

/// What it used between both.
fn used(vmi: &Value, before: &Sample, after: &Sample) -> Value {
    let seconds = |sample: &Sample| sample.used["cpuSeconds"].as_f64().unwrap_or(0.0);
    let span = after.at.duration_since(before.at).as_secs_f64().max(0.001);
    let share = ((seconds(after) - seconds(before)) / span * 1000.0)
        .round()
        .max(0.0);
    json!({
        "namespace": vmi["metadata"]["namespace"], "name": vmi["metadata"]["name"],
        "node": vmi["status"]["nodeName"],
        "cpuMillicores": share, "memoryBytes": after.used["residentBytes"],
        "guestMemory": vmi["status"]["memory"]["guestCurrent"],
    })
}

fn table(all: &[Value], has_namespace: bool) -> String {
    let mut headings = vec!["NAME", "CPU(cores)", "MEMORY(bytes)", "GUEST", "NODE"];
    if has_namespace {
        headings.insert(0, "NAMESPACE");
    }
    let mut table = Table::default();
    table.line(headings);
    for used in all {
        let memory = used["memoryBytes"].as_u64().unwrap_or(0) >> 20;
        let guest = match text(used, "/guestMemory") {
            "" => "-",
            guest => guest,
        };
        let mut cells = vec![
            text(used, "/name").to_owned(),
            format!("{:.0}m", used["cpuMillicores"].as_f64().unwrap_or(0.0)),
            format!("{memory}Mi"),
            guest.to_owned(),
            text(used, "/node").to_owned(),
        ];
        if has_namespace {
            cells.insert(0, text(used, "/namespace").to_owned());
        }
        table.line(cells);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_second() {
        let vmi = json!({
            "metadata": {"namespace": "a", "name": "web"},
            "status": {"nodeName": "n1", "memory": {"guestCurrent": "128Mi"}},
        });
        let now = Instant::now();
        let sample = |after: u64, seconds: f64| Sample {
            at: now + Duration::from_secs(after),
            used: json!({"cpuSeconds": seconds, "residentBytes": 200 << 20}),
        };
        let used = used(&vmi, &sample(0, 10.0), &sample(2, 11.5));
        assert_eq!(
            (&used["cpuMillicores"], &used["memoryBytes"]),
            (&json!(750.0), &json!(200 << 20))
        );
        assert_eq!(
            table(&[used], true),
            "NAMESPACE  NAME  CPU(cores)  MEMORY(bytes)  GUEST  NODE\n\
             a          web   750m        200Mi          128Mi  n1\n"
        );
    }
}
