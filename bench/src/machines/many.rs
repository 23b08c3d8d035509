//! Many machines, most of which do not run, as it is where people keep machines: made, listed, deleted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Bench, objects};
use crate::client::Call;

const PATIENCE: Duration = Duration::from_secs(120);

/// How many there are, and how many of them run or stand still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) count: usize,
    pub(super) running: usize,
    pub(super) paused: usize,
}

impl Kinds {
    /// The object of each, by its number, and the status that it comes to. Those that run are spread among those that do not.
    fn machine(self, number: usize) -> (Value, &'static str) {
        let name = format!("many-{number}");
        let started = self.running + self.paused;
        let every = self.count / started.max(1);
        let place = number.checked_div(every).unwrap_or(usize::MAX);
        match (number.checked_rem(every) == Some(0), place) {
            (true, place) if place < self.running => (objects::machine(&name, "Always", "32Mi"), "Running"),
            (true, place) if place < started => (objects::paused(&name, "32Mi"), "Paused"),
            _ => (objects::machine(&name, "Halted", "32Mi"), "Stopped"),
        }
    }
}

pub(super) struct Many {
    pub(super) kinds: Kinds,
    /// Until the last one was answered, and until every one was what it is to be.
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

pub(super) async fn measure(bench: &Bench, kinds: Kinds) -> Result<Many> {
    let (cpu, memory) = (bench.server.cpu()?, bench.server.resident()?);
    let began = Instant::now();
    let mut wanted = BTreeMap::new();
    for number in 0..kinds.count {
        let (machine, status) = kinds.machine(number);
        bench.create(objects::MACHINES, &machine).await?;
        wanted.insert(format!("many-{number}"), status);
    }
    let created = began.elapsed();
    until(bench, |items| {
        items.len() == kinds.count
            && items.iter().all(|item| {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                let status = item["status"]["printableStatus"].as_str();
                status.is_some() && status == wanted.get(name).copied()
            })
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
        kinds,
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
                "machines did not settle within {PATIENCE:?}: {:?}",
                items
                    .iter()
                    .map(|item| &item["status"]["printableStatus"])
                    .collect::<Vec<_>>()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_each_kind_as_were_asked_for() {
        for (count, running, paused) in [
            (100, 4, 8),
            (10, 1, 1),
            (10, 5, 5),
            (7, 2, 1),
            (5, 0, 0),
            (0, 0, 0),
        ] {
            let kinds = Kinds {
                count,
                running,
                paused,
            };
            let all: Vec<&str> = (0..count).map(|number| kinds.machine(number).1).collect();
            let of = |status| all.iter().filter(|it| **it == status).count();
            assert_eq!((of("Running"), of("Paused")), (running, paused), "{kinds:?}");
        }
    }
}
