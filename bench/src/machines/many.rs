//! Many machines that do not run: made, listed, deleted.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Bench, objects};
use crate::client::Call;

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Many {
    pub(super) count: usize,
    /// Until the last one was answered, and until every one said that it is stopped.
    pub(super) created: Duration,
    pub(super) settled: Duration,
    /// CPU time of Fairway for all of them until then.
    pub(super) cpu: Duration,
    pub(super) memory: u64,
    pub(super) listed: Duration,
    pub(super) list_bytes: usize,
    /// Until none was left.
    pub(super) deleted: Duration,
    pub(super) delete_cpu: Duration,
}

pub(super) async fn measure(bench: &Bench, count: usize) -> Result<Many> {
    let (cpu, memory) = (bench.server.cpu()?, bench.server.resident()?);
    let began = Instant::now();
    for number in 0..count {
        let machine = objects::machine(&format!("many-{number}"), "Halted", "128Mi");
        bench.create(objects::MACHINES, &machine).await?;
    }
    let created = began.elapsed();
    until(bench, |items| {
        items.len() == count
            && items
                .iter()
                .all(|item| item["status"]["printableStatus"] == "Stopped")
    })
    .await?;
    let settled = began.elapsed();
    let cpu = bench.server.cpu()?.saturating_sub(cpu);
    let memory = bench.server.resident()?.saturating_sub(memory);
    let began = Instant::now();
    let list_bytes = bench
        .client
        .send(Call::get(objects::MACHINES))
        .await?
        .success()?
        .len();
    let listed = began.elapsed();
    let before = bench.server.cpu()?;
    let began = Instant::now();
    bench.delete(objects::MACHINES).await?;
    until(bench, <[Value]>::is_empty).await?;
    Ok(Many {
        count,
        created,
        settled,
        cpu,
        memory,
        listed,
        list_bytes,
        deleted: began.elapsed(),
        delete_cpu: bench.server.cpu()?.saturating_sub(before),
    })
}

async fn until(bench: &Bench, is_so: impl Fn(&[Value]) -> bool) -> Result<()> {
    let began = Instant::now();
    loop {
        let list = bench.get(objects::MACHINES).await?.unwrap_or_default();
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        if is_so(items) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!(
                "machines did not settle within {PATIENCE:?}; the first: {:?}",
                items.first()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
