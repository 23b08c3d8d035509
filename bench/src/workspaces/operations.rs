//! The same operations in one workspace of many and in one of one. The servers take turns, many times, so that what the
//! machine does besides falls on both.
//!
//! "One of many" is the same one all the time, as a tenant who works in his workspace. A read in another workspace each time is
//! measured, too: it finds nothing in the processor's caches, which is what a sum over all tenants looks like.

use anyhow::Result;
use serde_json::json;

use super::place;
use crate::client::{Call, Client};
use crate::load;
use crate::server::Server;
use crate::workloads::{config_map, name};

/// Turns, and operations in each. A turn that meets something else on the machine is off by a tenth and more, which is as
/// much as the floor allows: the median needs many, and reads, the cheapest, need many in each.
const TURNS: usize = 15;
const OPERATIONS: usize = 2_000;
const CLIENTS: usize = 4;
const OBJECTS: usize = 100;
const NAMESPACE: &str = "operations";

/// CPU of one operation, in milliseconds: the median of the turns.
pub(super) struct Compared {
    pub(super) operation: &'static str,
    pub(super) in_one: f64,
    pub(super) in_many: f64,
    /// The median of the turns' ratios. The two of a turn run in the same minute, so what else the machine does in it
    /// weighs on both, which it does not in two medians that may come from different turns.
    pub(super) ratio: f64,
    /// Whether each was in another workspace.
    pub(super) is_spread: bool,
}

const SPREAD: &str = "GET, each in another workspace";

pub(super) async fn compare(single: &Server, many: &Server, count: usize) -> Result<Vec<Compared>> {
    let sides = [(single, place(0)), (many, place(count / 2))];
    for (server, at) in &sides {
        prepare(server, at).await?;
    }
    let mut compared = Vec::new();
    for (operation, operations) in [
        ("create", OPERATIONS),
        ("GET", 4 * OPERATIONS),
        ("LIST of 100", OPERATIONS),
        ("apply", OPERATIONS),
        (SPREAD, 4 * OPERATIONS),
    ] {
        let mut cpu = [Vec::new(), Vec::new()];
        // The first turn warms up and does not count.
        for turn in 0..=TURNS {
            for side in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (server, at) = &sides[side];
                let among = if side == 0 { 1 } else { count };
                let load = load::run(
                    server,
                    CLIENTS,
                    operations,
                    call(operation, at, turn * OPERATIONS, among),
                )
                .await?;
                if turn > 0 {
                    cpu[side].push(load.cpu_ms);
                }
            }
        }
        let ratios = cpu[0].iter().zip(&cpu[1]).map(|(one, many)| many / one).collect();
        let [in_one, in_many] = cpu.map(median);
        compared.push(Compared {
            operation,
            in_one,
            in_many,
            ratio: median(ratios),
            is_spread: operation == SPREAD,
        });
    }
    Ok(compared)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn prepare(server: &Server, at: &str) -> Result<()> {
    let client = Client::connect(&server.endpoint).await?;
    for namespace in [NAMESPACE, "created"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        let call = Call::create(format!("{at}/api/v1/namespaces"), namespace.to_string());
        client.send(call).await?.success()?;
    }
    for number in 0..OBJECTS {
        let path = format!("{at}/api/v1/namespaces/{NAMESPACE}/configmaps");
        client
            .send(Call::create(path, config_map(number, "first")))
            .await?
            .success()?;
    }
    Ok(())
}

fn call(
    operation: &'static str,
    at: &str,
    first: usize,
    among: usize,
) -> impl Fn(usize) -> Call + Send + Sync + use<> {
    let namespaces = format!("{at}/api/v1/namespaces");
    move |number| {
        let one = name(number * 7 % OBJECTS);
        match operation {
            "create" => Call::create(
                format!("{namespaces}/created/configmaps"),
                config_map(first + number, "first"),
            ),
            "GET" => Call::get(format!("{namespaces}/{NAMESPACE}/configmaps/{one}")),
            SPREAD => {
                let at = place((first + number) * 7_919 % among);
                Call::get(format!(
                    "{at}/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
                ))
            }
            "LIST of 100" => Call::get(format!("{namespaces}/{NAMESPACE}/configmaps?limit=100")),
            _ => Call::apply(
                format!("{namespaces}/{NAMESPACE}/configmaps/{one}?fieldManager=bench&force=true"),
                config_map(number * 7 % OBJECTS, &(first + number).to_string()),
            ),
        }
    }
}
