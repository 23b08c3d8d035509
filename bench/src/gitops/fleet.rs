//! Fairway with thousands of applications in one repository: until all are synced, at rest, and after a commit of one file.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::applications::{self, Follower, create};
use super::repository::{NAMESPACE, application};
use super::side::{self, Side};
use crate::client::{Call, Client};
use crate::figures::{Figures, milliseconds};
use crate::workloads::{MEBIBYTE, make_namespace};

/// Applications that converge and rest.
const FLEET: usize = 1_000;
/// Applications of the repository in which one file changes.
const REPOSITORY: usize = 5_000;
/// How long an ApplicationSet may take until its first Application is there.
const GENERATED: Duration = Duration::from_secs(30);
/// How long children of `git` are kept for the next question, and a little more.
const HELPERS: Duration = Duration::from_secs(15);
const KIBIBYTE: f64 = 1024.0;

pub(super) async fn measure(binary: &Path, directory: &Path, divide: usize, rest: u64) -> Result<Figures> {
    let (count, whole) = (FLEET / divide, REPOSITORY / divide);
    let side = side::fairway(binary, directory).await?;
    make_namespace(&side.api, NAMESPACE).await?;
    // One more than the fleet: what is made once for all, such as compiled schemas, is not what each application costs.
    side.repository.fill(whole + 1)?;
    side.repository.commit("all applications")?;
    let mut fleet = Fleet {
        client: Client::connect(&side.api.endpoint).await?,
        follower: Follower::start(&side.api.endpoint).await?,
        side,
        figures: Figures::default(),
    };
    eprintln!("  a push of {} files", whole * 4);
    fleet.first_push().await?;
    let idle = fleet.rested(Duration::ZERO).await?;
    let url = fleet.side.repository.url.clone();
    create(&fleet.client, whole..whole + 1, &url).await?;
    fleet.follower.synced(whole..whole + 1).await?;
    let before = fleet.rested(Duration::ZERO).await?;
    let first = before.saturating_sub(idle) as f64 / MEBIBYTE;
    fleet.figures.set("first application", "memory", first);

    eprintln!("  {count} applications");
    let sets = Patterns::of(count);
    let by_set = fleet.converge(0..count, Some(&sets.fleet), "fleet").await?;
    fleet
        .figures
        .set("fleet", "by one set", f64::from(u8::from(by_set)));
    let each = |resident: u64| resident.saturating_sub(before) as f64 / KIBIBYTE / count as f64;
    let made = fleet.rested(Duration::ZERO).await?;
    fleet
        .figures
        .set("fleet", "kilobytes each, just made", each(made));
    let share = fleet.side.idle_share(Duration::from_secs(60)).await?;
    fleet.figures.set("fleet", "cpu percent", share);
    eprintln!("  idle at {share:.2} % of a core; then {rest} s of rest");
    let rested = fleet.rested(Duration::from_secs(rest)).await?;
    fleet.figures.set("fleet", "kilobytes each", each(rested));
    fleet.figures.set("fleet", "memory", rested as f64 / MEBIBYTE);

    eprintln!("  {whole} applications");
    let pattern = by_set.then_some(sets.whole.as_str());
    fleet.converge(count..whole, pattern, "repository").await?;
    eprintln!("  a commit of one file");
    fleet.one_file(whole / 2).await?;
    let share = fleet.side.idle_share(Duration::from_secs(30)).await?;
    fleet.figures.set("repository", "cpu percent", share);
    Ok(fleet.figures)
}

struct Fleet {
    side: Side,
    client: Client,
    follower: Follower,
    figures: Figures,
}

impl Fleet {
    async fn first_push(&mut self) -> Result<()> {
        let (cpu, started) = (self.side.cpu()?, Instant::now());
        self.side.repository.push()?;
        let wall = started.elapsed().as_secs_f64();
        self.side.settle().await?;
        let used = self.side.cpu()?.saturating_sub(cpu).as_secs_f64();
        self.figures.set("first push", "wall", wall);
        self.figures.set("first push", "cpu", used);
        Ok(())
    }

    /// Memory when nothing is left to do and the helpers of the last work have gone.
    async fn rested(&self, rest: Duration) -> Result<u64> {
        self.side.settle().await?;
        tokio::time::sleep(rest.max(HELPERS)).await;
        self.side.resident()
    }

    /// Sees to it that there are these applications, by an ApplicationSet if somebody acts on it, and waits until all are
    /// synced; whether somebody did.
    async fn converge(
        &mut self,
        numbers: Range<usize>,
        pattern: Option<&str>,
        what: &'static str,
    ) -> Result<bool> {
        let (mut cpu, mut started) = (self.side.cpu()?, Instant::now());
        let count = numbers.len();
        let by_set = match pattern {
            Some(pattern) => self.generate(pattern).await?,
            None => false,
        };
        if !by_set {
            (cpu, started) = (self.side.cpu()?, Instant::now());
            create(&self.client, numbers.clone(), &self.side.repository.url).await?;
        }
        if let Err(error) = self.follower.synced(numbers).await {
            let said = self.side.complaints(&self.client).await.unwrap_or_default();
            return Err(error).with_context(|| said.join("\n"));
        }
        self.figures.set(what, "wall", started.elapsed().as_secs_f64());
        self.side.settle().await?;
        let used = milliseconds(self.side.cpu()?.saturating_sub(cpu));
        self.figures.set(what, "cpu", used / count as f64);
        Ok(by_set)
    }

    /// Has an ApplicationSet make Applications; false if nobody acts on it.
    async fn generate(&self, pattern: &str) -> Result<bool> {
        let before = self.follower.count();
        let (path, body) = applications::set(pattern, &self.side.repository.url);
        self.client.send(Call::apply(path, body)).await?.success()?;
        let started = Instant::now();
        while self.follower.count() == before {
            if started.elapsed() > GENERATED {
                eprintln!("  nobody acts on ApplicationSets here: Applications are made one by one");
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(true)
    }

    /// Commits one file of one application, and counts who looks at it.
    async fn one_file(&mut self, number: usize) -> Result<()> {
        let counted = [
            ("renders", "fairway_gitops_renders_total"),
            (
                "passes",
                "controller_runtime_reconcile_total{controller=\"application\"",
            ),
        ];
        let mut before = Vec::new();
        for (_, line) in counted {
            before.push(self.side.metric(&self.client, line).await?);
        }
        let cpu = self.side.cpu()?;
        let wait = self
            .side
            .push(&self.client, &self.follower, number, "one file")
            .await?;
        self.side.settle().await?;
        let used = self.side.cpu()?.saturating_sub(cpu);
        self.figures.set("one file", "wall", milliseconds(wait));
        self.figures.set("one file", "cpu", milliseconds(used));
        for ((what, line), before) in counted.into_iter().zip(before) {
            if let (Some(before), Some(after)) = (before, self.side.metric(&self.client, line).await?) {
                self.figures.set("one file", what, after - before);
            }
        }
        Ok(())
    }
}

/// The names of the directories that are in an ApplicationSet.
struct Patterns {
    fleet: String,
    whole: String,
}

impl Patterns {
    /// For a fleet of ten, a hundred or a thousand, and five times as many in the whole repository.
    fn of(fleet: usize) -> Self {
        let name = application(0);
        let digits = (fleet - 1).to_string().len();
        let stem = name.get(..name.len().saturating_sub(digits)).unwrap_or("app-");
        Self {
            fleet: format!("{stem}*"),
            whole: format!("{}[0-4]*", stem.strip_suffix('0').unwrap_or(stem)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_the_fleet_and_the_repository() {
        for (fleet, expected) in [
            (1_000, ("app-00*", "app-0[0-4]*")),
            (10, ("app-0000*", "app-000[0-4]*")),
        ] {
            let patterns = Patterns::of(fleet);
            assert_eq!((patterns.fleet.as_str(), patterns.whole.as_str()), expected);
        }
    }
}
