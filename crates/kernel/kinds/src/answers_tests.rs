//! What a real kube-apiserver 1.36.3 made of ordinary manifests, wrong ones, and changes (`testdata/record.py` asked it):
//! the same must come out here.

use serde_json::{Value, json};

use crate::check::NOW;
use crate::meta::{self, Birth};
use crate::service::{AllocationPlan, plan_allocation};
use crate::{WriteContext, read, strategy};

const ANSWERS: &str = include_str!("../testdata/answers.jsonl");

/// Gives a Service the addresses and ports that the real server happened to choose.
fn allocate(service: &mut Value, old: Option<&Value>, answer: &Value) -> Result<(), Vec<String>> {
    let plan = plan_allocation(service, old, &["IPv4"])
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let spec = &answer["spec"];
    for need in plan.cluster_ips {
        AllocationPlan::assign_ip(
            service,
            need.index,
            spec["clusterIPs"][need.index].as_str().unwrap_or("10.96.0.9"),
        );
    }
    for need in plan.node_ports {
        let port = spec["ports"][need.index]["nodePort"].as_u64().unwrap_or(30000);
        AllocationPlan::assign_port(service, need.index, u16::try_from(port).unwrap());
    }
    if plan.health_check_port.is_some() {
        let port = spec["healthCheckNodePort"].as_u64().unwrap_or(30000);
        AllocationPlan::assign_health_check_port(service, u16::try_from(port).unwrap());
    }
    Ok(())
}

fn run(case: &Value) -> (Value, Vec<String>) {
    let version = case["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let resource = case["resource"].as_str().unwrap();
    let namespace = case["namespace"].as_str();
    let kind = strategy(group, resource);
    let ctx = WriteContext {
        now: NOW,
        subresource: None,
        namespace,
    };
    let old = case.get("old");
    let mut object = case[if old.is_some() { "new" } else { "object" }].clone();
    kind.default(&mut object);
    match old {
        Some(old) => meta::prepare_update(&mut object, old),
        None => {
            meta::match_namespace(&mut object, namespace).unwrap();
            meta::prepare_create(
                &mut object,
                &Birth {
                    now: NOW,
                    uid: "uid-1",
                    name_suffix: "abcde",
                },
            );
        }
    }
    if resource == "services"
        && let Err(errors) = allocate(&mut object, old, &case["answer"])
    {
        return (object, sorted(errors));
    }
    let errors = if let Some(old) = old {
        kind.prepare_update(&ctx, &mut object, old);
        // The recorded objects have lost their versions, which change from run to run.
        object["metadata"]["resourceVersion"] = json!("1");
        kind.validate_update(&ctx, &object, old)
    } else {
        kind.prepare_create(&ctx, &mut object);
        kind.validate_create(&ctx, &object)
    };
    read::unset(&mut object["metadata"], "resourceVersion");
    (object, sorted(errors.iter().map(ToString::to_string).collect()))
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}

#[test]
fn answers_are_those_of_the_reference() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in ANSWERS.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (object, errors) = run(&case);
        let title = format!(
            "{} {} {}",
            case["resource"], case["object"]["metadata"]["name"], case["change"]
        );
        let mut expected: Vec<String> = read::texts(&case, "causes").map(str::to_owned).collect();
        expected.sort();
        if errors != expected {
            wrong.push(format!("{title}:\n  expected {expected:#?}\n  found {errors:#?}"));
        } else if expected.is_empty() && object != case["answer"] {
            wrong.push(format!(
                "{title}:\n  expected {}\n  found    {object}",
                case["answer"]
            ));
        }
        count += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 100, "{count}");
}
