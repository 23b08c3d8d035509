//! Closed-loop load: each client sends its next request when the last one is answered, until the operations are used
//! up, while the server's CPU time runs along.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::client::{Call, Client};
use crate::figures::Load;
use crate::server::Server;

/// A server does part of its work behind its answers (compaction, caches): it belongs to the operations too.
const SETTLE: Duration = Duration::from_millis(300);

pub(crate) async fn run<F>(server: &Server, clients: usize, operations: usize, call: F) -> Result<Load>
where
    F: Fn(usize) -> Call + Send + Sync + 'static,
{
    let clients = Client::connect_many(&server.endpoint, clients).await?;
    let cpu = server.cpu()?;
    let started = Instant::now();
    let latencies = send_all(clients, operations, call).await?;
    let wall = started.elapsed();
    tokio::time::sleep(SETTLE).await;
    Ok(Load::new(latencies, wall, server.cpu()? - cpu))
}

/// Sends `operations` requests, numbered from zero, over the clients; any answer but a success ends the run.
pub(crate) async fn send_all<F>(clients: Vec<Client>, operations: usize, call: F) -> Result<Vec<Duration>>
where
    F: Fn(usize) -> Call + Send + Sync + 'static,
{
    let next = Arc::new(AtomicUsize::new(0));
    let call = Arc::new(call);
    let mut tasks = JoinSet::new();
    for client in clients {
        let (next, call) = (Arc::clone(&next), Arc::clone(&call));
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= operations {
                    return anyhow::Ok(latencies);
                }
                let call = call(number);
                let started = Instant::now();
                client.send(call).await?.success()?;
                latencies.push(started.elapsed());
            }
        });
    }
    let mut latencies = Vec::with_capacity(operations);
    while let Some(finished) = tasks.join_next().await {
        latencies.extend(finished??);
    }
    Ok(latencies)
}
