//! Fairway with thousands of applications in one repository: until all are synced, at rest, and after a commit of one file.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::applications::{self, Follower, create};
use super::repository::NAMESPACE;
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
const KIBIBYTE: f64 = 1024.0;

pub(super) async fn measure(binary: &Path, directory: &Path, divide: usize, rest: u64) -> Result<Figures> {
    let mut figures = Figures::default();
    let (fleet, whole) = (FLEET / divide, REPOSITORY / divide);
    let side = side::fairway(binary, directory).await?;
    make_namespace(&side.api, NAMESPACE).await?;
    side.repository.fill(whole)?;
    side.repository.commit("all applications")?;
    eprintln!("  a push of {} files", whole * 4);
    let (cpu, started) = (side.cpu()?, Instant::now());
    side.repository.push()?;
    figures.set("first push", "wall", started.elapsed().as_secs_f64());
    side.settle().await?;
    let used = side.cpu()?.saturating_sub(cpu);
    figures.set("first push", "cpu", used.as_secs_f64());

    let client = Client::connect(&side.api.endpoint).await?;
    let follower = Follower::start(&side.api.endpoint).await?;
    // What is made once for all, such as compiled schemas, is not what each one costs.
    let idle = side.resident()?;
    create(&client, 0..1, &side.repository.url).await?;
    follower.synced(0..1).await?;
    side.settle().await?;
    let before = side.resident()?;
    figures.set(
        "first application",
        "memory",
        before.saturating_sub(idle) as f64 / MEBIBYTE,
    );

    eprintln!("  {fleet} applications");
    let by_set = converge(
        &side,
        &client,
        &follower,
        1..fleet,
        "app-00*",
        "fleet",
        &mut figures,
    )
    .await?;
    figures.set("fleet", "by one set", f64::from(u8::from(by_set)));
    let each = |side: &Side, count: usize| -> Result<f64> {
        Ok(side.resident()?.saturating_sub(before) as f64 / KIBIBYTE / count as f64)
    };
    figures.set("fleet", "kilobytes each, just made", each(&side, fleet)?);
    let share = side.idle_share(Duration::from_secs(60)).await?;
    figures.set("fleet", "cpu percent", share);
    eprintln!("  idle at {share:.2} % of a core; then {rest} s of rest");
    tokio::time::sleep(Duration::from_secs(rest)).await;
    figures.set("fleet", "kilobytes each", each(&side, fleet)?);
    figures.set("fleet", "memory", side.resident()? as f64 / MEBIBYTE);

    eprintln!("  {whole} applications");
    converge(
        &side,
        &client,
        &follower,
        fleet..whole,
        "app-0*",
        "repository",
        &mut figures,
    )
    .await?;
    let renders = async || side.metric(&client, "fairway_gitops_renders_total").await;
    let passes = async || {
        let line = "controller_runtime_reconcile_total{controller=\"application\"";
        side.metric(&client, line).await
    };
    eprintln!("  a commit of one file");
    let (rendered, passed, cpu) = (renders().await?, passes().await?, side.cpu()?);
    let wait = side.push(&client, &follower, whole / 2, "one file").await?;
    side.settle().await?;
    figures.set("one file", "wall", milliseconds(wait));
    figures.set("one file", "cpu", milliseconds(side.cpu()?.saturating_sub(cpu)));
    if let (Some(before), Some(after)) = (rendered, renders().await?) {
        figures.set("one file", "renders", after - before);
    }
    if let (Some(before), Some(after)) = (passed, passes().await?) {
        figures.set("one file", "passes", after - before);
    }
    let share = side.idle_share(Duration::from_secs(30)).await?;
    figures.set("repository", "cpu percent", share);
    Ok(figures)
}

/// Makes applications and waits until all are synced; whether an ApplicationSet made them.
async fn converge(
    side: &Side,
    client: &Client,
    follower: &Follower,
    numbers: std::ops::Range<usize>,
    pattern: &str,
    what: &'static str,
    figures: &mut Figures,
) -> Result<bool> {
    let (cpu, started) = (side.cpu()?, Instant::now());
    let count = numbers.len();
    let by_set = generate(client, follower, pattern, &side.repository.url).await?;
    if !by_set {
        create(client, numbers.clone(), &side.repository.url).await?;
    }
    if let Err(error) = follower.synced(numbers).await {
        let said = side.complaints(client).await.unwrap_or_default();
        return Err(error).with_context(|| said.join("\n"));
    }
    figures.set(what, "wall", started.elapsed().as_secs_f64());
    side.settle().await?;
    let used = milliseconds(side.cpu()?.saturating_sub(cpu));
    figures.set(what, "cpu", used / count as f64);
    Ok(by_set)
}

/// Has an ApplicationSet make Applications; false if nobody acts on it.
async fn generate(client: &Client, follower: &Follower, pattern: &str, url: &str) -> Result<bool> {
    let before = follower.count();
    let (path, body) = applications::set(pattern, url);
    client.send(Call::apply(path, body)).await?.success()?;
    let started = Instant::now();
    while follower.count() == before {
        if started.elapsed() > GENERATED {
            eprintln!("  nobody acts on ApplicationSets here: Applications are made one by one");
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(true)
}
