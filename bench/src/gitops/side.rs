//! One side of the comparison: an API with a GitOps engine on it, and a repository that it syncs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Child;

use super::applications::{APPLICATIONS, Follower, create};
use super::repository::{NAMESPACE, Repository, application};
use crate::client::{Call, Client};
use crate::fairway;
use crate::figures::{Figures, milliseconds, percentile};
use crate::process;
use crate::server::{Server, absolute};
use crate::workloads::{MEBIBYTE, make_namespace};

/// Applications that are made one by one, to see how long each takes.
const SINGLY: usize = 10;
const FEW: usize = 20;
const ALL: usize = 100;
const PUSHES: usize = 20;
/// A side that does so little in a second has nothing left to do: kube-apiserver and etcd alone need a few hundredths.
const IDLE: Duration = Duration::from_millis(60);
/// Before memory is read.
const REST: Duration = Duration::from_secs(130);
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// A program beside the API.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) child: Child,
}

pub(super) struct Side {
    pub(super) api: Server,
    /// What makes GitOps of it; nothing if the API's own process does.
    pub(super) parts: Vec<Part>,
    pub(super) repository: Repository,
    /// Whether it has to be told that something was pushed.
    pub(super) needs_refresh: bool,
}

/// Fairway with a repository of its own.
pub(super) async fn fairway(binary: &Path, directory: &Path) -> Result<Side> {
    let directory = absolute(directory)?;
    let api = fairway::start(binary, &directory).await?;
    make_namespace(&api, "argocd").await?;
    Ok(Side {
        api,
        parts: Vec::new(),
        repository: hosted(binary, &directory)?,
        needs_refresh: false,
    })
}

/// A repository that Fairway hosts, pushed to over HTTPS with a token.
fn hosted(binary: &Path, directory: &Path) -> Result<Repository> {
    let data = directory.join("data");
    let output = Command::new(absolute(binary)?)
        .args(["repo", "create", "root/fleet", "--with-token"])
        .env("KUBECONFIG", data.join("kubeconfig"))
        .output()
        .context("cannot run fairway repo create")?;
    ensure!(
        output.status.success(),
        "fairway repo create failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let remote = String::from_utf8(output.stdout)?.trim().to_owned();
    let (_, place) = remote
        .split_once('@')
        .context("fairway repo create printed no address with a token")?;
    let url = format!("https://{place}");
    let host = place.split('/').next().unwrap_or_default();
    let environment = [
        ("GIT_SSL_CAINFO", data.join("pki/ca.crt").display().to_string()),
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        // Not every resolver knows that names below localhost are this machine.
        ("GIT_CONFIG_KEY_0", "http.curloptResolve".to_owned()),
        ("GIT_CONFIG_VALUE_0", format!("{host}:127.0.0.1")),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value));
    Repository::new(&directory.join("work"), remote, url, environment.into())
}

impl Side {
    fn part_pids(&self) -> Vec<u32> {
        self.parts.iter().filter_map(|part| part.child.id()).collect()
    }

    /// CPU time of all processes, and of all that they have started.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let pids = self.api.pids().iter().copied().chain(self.part_pids());
        pids.map(process::family_cpu).sum()
    }

    /// Memory of what makes GitOps of an API: of Fairway everything.
    pub(super) fn resident(&self) -> Result<u64> {
        let own = match self.parts.is_empty() {
            true => self.api.pids().to_vec(),
            false => self.part_pids(),
        };
        own.into_iter().map(process::family_resident).sum()
    }

    fn everything(&self) -> Result<u64> {
        let pids = self.api.pids().iter().copied().chain(self.part_pids());
        pids.map(process::family_resident).sum()
    }

    /// Waits until next to nothing is done.
    pub(super) async fn settle(&self) -> Result<()> {
        let started = Instant::now();
        let mut before = self.cpu()?;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.cpu()?;
            if now.saturating_sub(before) < IDLE {
                return Ok(());
            }
            if started.elapsed() > IDLE_LIMIT {
                eprintln!("  still busy after {IDLE_LIMIT:?}");
                return Ok(());
            }
            before = now;
        }
    }

    /// The share of a core that is used while nothing happens, in percent.
    pub(super) async fn idle_share(&self, over: Duration) -> Result<f64> {
        let (before, started) = (self.cpu()?, Instant::now());
        tokio::time::sleep(over).await;
        let used = self.cpu()?.saturating_sub(before);
        Ok(used.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0)
    }

    /// Pushes a change of one application; how long until it is synced.
    pub(super) async fn push(
        &self,
        client: &Client,
        follower: &Follower,
        number: usize,
        value: &str,
    ) -> Result<Duration> {
        self.repository.change(number, value)?;
        let commit = self.repository.commit(value)?;
        let started = Instant::now();
        tokio::task::block_in_place(|| self.repository.push())?;
        if self.needs_refresh {
            // What Argo CD's webhook does when it hears of a push.
            let path = format!("{APPLICATIONS}/{}", application(number));
            let body = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
            client
                .send(Call::merge(path, body.to_string()))
                .await?
                .success()?;
        }
        follower.synced_to(number, &commit).await?;
        Ok(started.elapsed())
    }

    /// Everything that is compared.
    pub(super) async fn measure(&self, divide: usize, rest: u64) -> Result<Figures> {
        let mut figures = Figures::default();
        let all = ALL / divide.min(2);
        self.settle().await?;
        let share = self.idle_share(Duration::from_secs(10)).await?;
        figures.set("idle", "cpu percent", share);
        self.note_memory("idle", &mut figures)?;

        make_namespace(&self.api, NAMESPACE).await?;
        self.repository.fill(all)?;
        self.repository.commit("all applications")?;
        self.repository.push()?;
        let client = Client::connect(&self.api.endpoint).await?;
        let follower = Follower::start(&self.api.endpoint).await?;
        let url = &self.repository.url;

        eprintln!("  one by one");
        let mut waits = Vec::new();
        for number in 0..=SINGLY {
            let started = Instant::now();
            create(&client, number..number + 1, url).await?;
            follower.synced(number..number + 1).await?;
            waits.push(started.elapsed());
        }
        figures.set("first application", "wall", milliseconds(waits.remove(0)));
        waits.sort_unstable();
        figures.set("next applications", "wall", milliseconds(percentile(&waits, 0.5)));
        self.settle().await?;

        let mut from = SINGLY + 1;
        for (what, count) in [("20 applications", FEW), ("100 applications", all - from - FEW)] {
            eprintln!("  {count} more");
            let (cpu, started) = (self.cpu()?, Instant::now());
            create(&client, from..from + count, url).await?;
            follower.synced(0..from + count).await?;
            figures.set(what, "wall", started.elapsed().as_secs_f64());
            self.settle().await?;
            let used = milliseconds(self.cpu()?.saturating_sub(cpu));
            figures.set(what, "cpu", used / count as f64);
            from += count;
        }
        // Both give memory back when they have been idle for a while.
        tokio::time::sleep(REST.min(Duration::from_secs(rest))).await;
        self.note_memory("100 applications", &mut figures)?;
        let share = self.idle_share(Duration::from_secs(30)).await?;
        figures.set("100 applications", "cpu percent", share);

        eprintln!("  {PUSHES} pushes");
        let (cpu, mut waits) = (self.cpu()?, Vec::new());
        for round in 0..PUSHES {
            let value = format!("round {round}");
            waits.push(self.push(&client, &follower, round, &value).await?);
        }
        self.settle().await?;
        let used = milliseconds(self.cpu()?.saturating_sub(cpu));
        waits.sort_unstable();
        figures.set("push", "p50", milliseconds(percentile(&waits, 0.5)));
        figures.set("push", "worst", milliseconds(percentile(&waits, 1.0)));
        figures.set("push", "cpu", used / PUSHES as f64);
        Ok(figures)
    }

    fn note_memory(&self, when: &'static str, figures: &mut Figures) -> Result<()> {
        figures.set(when, "memory", self.resident()? as f64 / MEBIBYTE);
        figures.set(when, "with API", self.everything()? as f64 / MEBIBYTE);
        for part in &self.parts {
            if let Some(pid) = part.child.id() {
                figures.set(when, part.name, process::family_resident(pid)? as f64 / MEBIBYTE);
            }
        }
        Ok(())
    }

    /// Figures of the server's own, by the beginnings of their lines.
    pub(super) async fn metric(&self, client: &Client, line: &str) -> Result<Option<f64>> {
        let body = client.send(Call::get("/metrics")).await?.success()?;
        let text = String::from_utf8_lossy(&body);
        let figures = text
            .lines()
            .filter(|found| found.starts_with(line))
            .filter_map(|found| found.rsplit_once(' ')?.1.parse::<f64>().ok());
        Ok(figures.fold(None, |sum, figure| Some(sum.unwrap_or(0.0) + figure)))
    }

    /// A page of what went wrong, for a run that is given up.
    pub(super) async fn complaints(&self, client: &Client) -> Result<Vec<String>> {
        let body = client
            .send(Call::get(format!("{APPLICATIONS}?limit=500")))
            .await?
            .success()?;
        let list: Value = serde_json::from_slice(&body)?;
        let mut said = Vec::new();
        for object in list["items"].as_array().into_iter().flatten() {
            let status = &object["status"];
            if status["sync"]["status"] != "Synced" && said.len() < 5 {
                said.push(format!(
                    "{}: {} {} {}",
                    object["metadata"]["name"],
                    status["sync"],
                    status["conditions"],
                    status["operationState"]["message"]
                ));
            }
        }
        Ok(said)
    }
}
