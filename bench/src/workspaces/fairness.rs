//! What a flood in one workspace does to the requests of another.
//!
//! The quiet client has a thread of its own, so that it does not queue behind the flood inside this program; for the
//! cores of a small machine it still competes with it, as it would with any neighbour.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;

use super::operations::median;
use super::place;
use crate::client::{Call, Client, Endpoint};
use crate::figures::{milliseconds, percentile};
use crate::server::Server;
use crate::workloads::{config_map, name};

/// Clients of the flood, each with a request under way all the time.
const FLOOD: usize = 128;
/// Connections that they share.
const CONNECTIONS: usize = 8;
const SECONDS: u64 = 4;
/// Times alone and times flooded, in turns: how a small machine shares its cores between the flood's clients, the quiet one
/// and the server is another matter every time.
const TURNS: usize = 5;
const PAUSE: Duration = Duration::from_millis(5);
const NAMESPACE: &str = "fairness";

/// The quiet workspace alone, and while its neighbour is flooded.
pub(super) struct Slowed {
    pub(super) operation: &'static str,
    pub(super) alone: (f64, f64),
    pub(super) flooded: (f64, f64),
    /// What the flood got done, and was refused, in a second.
    pub(super) flood_rate: f64,
    pub(super) refused_rate: f64,
}

pub(super) async fn measure(server: &Server, count: usize) -> Result<Vec<Slowed>> {
    let (quiet, loud) = (place(count / 3), place(count / 3 + 1));
    let client = Client::connect(&server.endpoint).await?;
    for at in [&quiet, &loud] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let call = Call::create(format!("{at}/api/v1/namespaces"), namespace.to_string());
        client.send(call).await?.success()?;
        for number in 0..100 {
            let path = format!("{at}/api/v1/namespaces/{NAMESPACE}/configmaps");
            client
                .send(Call::create(path, config_map(number, "first")))
                .await?
                .success()?;
        }
    }
    let mut slowed = Vec::new();
    for operation in ["GET", "create"] {
        let mut turns = Vec::new();
        for turn in 0..TURNS {
            turns.push(take_turn(server, (&quiet, &loud), operation, turn).await?);
        }
        let of = |figure: fn(&Slowed) -> f64| median(turns.iter().map(figure).collect());
        slowed.push(Slowed {
            operation,
            alone: (of(|turn| turn.alone.0), of(|turn| turn.alone.1)),
            flooded: (of(|turn| turn.flooded.0), of(|turn| turn.flooded.1)),
            flood_rate: of(|turn| turn.flood_rate),
            refused_rate: of(|turn| turn.refused_rate),
        });
    }
    Ok(slowed)
}

async fn take_turn(
    server: &Server,
    (quiet, loud): (&str, &str),
    operation: &'static str,
    turn: usize,
) -> Result<Slowed> {
    let alone = ask(&server.endpoint, quiet, operation, &format!("alone-{turn}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    let (done, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let flood = flood(server, loud, (operation, turn), &stop, &done, &refused).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (before, turned_away, started) = (
        done.load(Ordering::Relaxed),
        refused.load(Ordering::Relaxed),
        Instant::now(),
    );
    let (endpoint, at) = (server.endpoint.clone(), quiet.to_owned());
    let flooded =
        tokio::task::spawn_blocking(move || ask(&endpoint, &at, operation, &format!("flooded-{turn}")))
            .await??;
    let seconds = started.elapsed().as_secs_f64();
    let rate = |counter: &AtomicU64, before: u64| (counter.load(Ordering::Relaxed) - before) as f64 / seconds;
    let slowed = Slowed {
        operation,
        alone,
        flooded,
        flood_rate: rate(&done, before),
        refused_rate: rate(&refused, turned_away),
    };
    stop.store(true, Ordering::Relaxed);
    flood.join_all().await;
    Ok(slowed)
}

/// One client after another request, with pauses: p50 and p99 in milliseconds.
fn ask(endpoint: &Endpoint, at: &str, operation: &str, run: &str) -> Result<(f64, f64)> {
    let (endpoint, at, operation, run) = (
        endpoint.clone(),
        at.to_owned(),
        operation.to_owned(),
        run.to_owned(),
    );
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let client = Client::connect(&endpoint).await?;
            let path = format!("{at}/api/v1/namespaces/{NAMESPACE}/configmaps");
            let mut latencies = Vec::new();
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(SECONDS) {
                let number = latencies.len();
                let call = if operation == "GET" {
                    Call::get(format!("{path}/{}", name(number % 100)))
                } else {
                    Call::create(&path, named(&format!("quiet-{run}-{number}")))
                };
                let started = Instant::now();
                client.send(call).await?.success()?;
                latencies.push(started.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
            latencies.sort_unstable();
            anyhow::Ok((
                milliseconds(percentile(&latencies, 0.50)),
                milliseconds(percentile(&latencies, 0.99)),
            ))
        })
    });
    asking.join().ok().context("the quiet client panicked")?
}

fn named(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
        .to_string()
}

async fn flood(
    server: &Server,
    at: &str,
    (operation, turn): (&'static str, usize),
    stop: &Arc<AtomicBool>,
    done: &Arc<AtomicU64>,
    refused: &Arc<AtomicU64>,
) -> Result<JoinSet<()>> {
    let clients = Client::connect_many(&server.endpoint, CONNECTIONS).await?;
    let mut tasks = JoinSet::new();
    for number in 0..FLOOD {
        let client = clients[number % CONNECTIONS].clone();
        let path = format!("{at}/api/v1/namespaces/{NAMESPACE}/configmaps");
        let (stop, done, refused) = (Arc::clone(stop), Arc::clone(done), Arc::clone(refused));
        tasks.spawn(async move {
            let mut sent = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                sent += 1;
                let call = if operation == "GET" {
                    Call::get(format!("{path}?limit=100"))
                } else {
                    Call::create(&path, named(&format!("flood-{turn}-{number}-{sent}")))
                };
                match client.send(call).await {
                    Ok(reply) if reply.status.is_success() => done.fetch_add(1, Ordering::Relaxed),
                    Ok(_) => refused.fetch_add(1, Ordering::Relaxed),
                    Err(_) => return,
                };
            }
        });
    }
    Ok(tasks)
}
