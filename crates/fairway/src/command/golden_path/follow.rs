//! A run as it goes on: each step with its log, as it comes, until the run is over.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;

use super::super::gitops::{Session, told};

/// How often is looked; a run without waiting takes less than a second.
const TURN: Duration = Duration::from_millis(50);

/// What was printed of a step.
#[derive(Default, Clone)]
struct Printed {
    lines: usize,
    state: String,
}

/// Prints what happens until the run is over. It ends well if the run has succeeded, or is gone as somebody wished.
pub(super) async fn follow(session: &Session, namespace: &str, name: &str) -> anyhow::Result<ExitCode> {
    let mut printed: Vec<Printed> = Vec::new();
    loop {
        let voyage = session
            .requests
            .get(&super::path(namespace, name))
            .await
            .map_err(told)?;
        let Some(voyage) = voyage else {
            bail!("Voyage {name} is gone");
        };
        let steps = voyage["status"]["steps"].as_array().cloned().unwrap_or_default();
        printed.resize(steps.len(), Printed::default());
        for (step, printed) in steps.iter().zip(&mut printed) {
            print_step(step, printed);
        }
        let wants_gone = voyage["spec"]["decommission"] == true;
        let attempt = |value: &Value| value.as_u64().unwrap_or(0);
        let is_retried = attempt(&voyage["spec"]["attempt"]) > attempt(&voyage["status"]["attempt"]);
        // Until what was just wished is heard, the end that is shown is an old one.
        let is_heard =
            voyage["status"]["observedGeneration"].as_u64() >= voyage["metadata"]["generation"].as_u64();
        let is_retried = is_retried || !is_heard;
        match voyage["status"]["phase"].as_str().unwrap_or("Pending") {
            "Succeeded" if !wants_gone => {
                print_output(&voyage["status"]["output"]);
                return Ok(ExitCode::SUCCESS);
            }
            "Decommissioned" => {
                println!("Voyage {name} is decommissioned.");
                return Ok(ExitCode::SUCCESS);
            }
            phase @ ("Failed" | "Cancelled") if !is_retried => {
                let message = voyage["status"]["message"].as_str().unwrap_or("");
                eprintln!("Voyage {name} is {phase}: {message}");
                return Ok(ExitCode::FAILURE);
            }
            _ => tokio::time::sleep(TURN).await,
        }
    }
}

fn print_step(step: &Value, printed: &mut Printed) {
    let state = step["state"].as_str().unwrap_or("pending");
    let name = step["name"].as_str().unwrap_or("");
    if printed.state != state && state == "running" {
        println!("… {name}");
    }
    let lines = step["log"].as_array().cloned().unwrap_or_default();
    // The oldest lines of a long log are dropped; then there are fewer than were seen.
    for line in lines.iter().skip(printed.lines) {
        println!(
            "    {}",
            line["text"].as_str().unwrap_or("").replace('\n', "\n    ")
        );
    }
    printed.lines = lines.len();
    if printed.state != state {
        match state {
            "completed" => println!("✓ {name}"),
            "skipped" => println!("- {name} (not wanted)"),
            "failed" => println!("✗ {name}"),
            "undone" => println!("↶ {name} (taken back)"),
            _ => {}
        }
        state.clone_into(&mut printed.state);
    }
}

/// Links and texts that the template shows.
fn print_output(output: &Value) {
    for link in output["links"].as_array().into_iter().flatten() {
        let title = link["title"].as_str().unwrap_or("Link");
        let to = link["url"].as_str().or(link["entityRef"].as_str()).unwrap_or("");
        println!("{title}: {to}");
    }
    for text in output["text"].as_array().into_iter().flatten() {
        let title = text["title"].as_str().unwrap_or("");
        let content = text["content"].as_str().unwrap_or("");
        println!("{title}:\n  {}", content.trim_end().replace('\n', "\n  "));
    }
}
