//! A list of a large catalog as a page asks for it, over the portal's API: entities come by pushes, as everybody's do. What the index
//! alone takes is measured by `fairway-bench catalog`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::Platform;
use super::web::{PORTAL, SIGN_IN, Web};

/// In each file and in each repository; the catalog takes no more than 1,000 and 10,000.
const IN_FILE: usize = 500;
const IN_REPOSITORY: usize = 5_000;
/// How long all of them may take to arrive.
const PATIENCE: Duration = Duration::from_secs(900);
/// A token does not live as long as a large push may take to be taken in.
const SIGNED_IN: Duration = Duration::from_secs(120);
const WHO: &str = "apiVersion: backstage.io/v1alpha1\nkind: Location\nmetadata: {name: bench-NUMBER}\nspec: {targets: [./catalog/*.yaml]}\n";

pub(super) struct Lists {
    pub(super) count: u64,
    pub(super) bytes: usize,
    /// From the first push until the last was there.
    pub(super) arrived: Duration,
    pub(super) wall: Vec<Duration>,
    pub(super) cpu: Vec<Duration>,
}

pub(super) async fn measure(
    platform: &Platform,
    scratch: &Path,
    count: usize,
    rounds: usize,
) -> Result<Lists> {
    let begun = Instant::now();
    for (number, first) in (0..count).step_by(IN_REPOSITORY).enumerate() {
        let last = count.min(first + IN_REPOSITORY);
        let tree = scratch.join(format!("tree-{number}"));
        write(&tree, number, first..last)?;
        push(platform, &tree, &format!("root/bench-{number}")).await?;
    }
    let held = arrive(platform, begun, count).await?;
    let arrived = begun.elapsed();
    eprintln!("  {held} are there after {:.0} s", arrived.as_secs_f64());
    platform.settle().await?;
    let token = token(platform).await?;
    let mut web = Web::connect(&platform.data, PORTAL).await?;
    let mut lists = Lists {
        count: held,
        bytes: 0,
        arrived,
        wall: Vec::new(),
        cpu: Vec::new(),
    };
    // The first warms up and does not count.
    for round in 0..=rounds {
        let before = platform.cpu()?;
        let begun = Instant::now();
        let answer = web.get("/api/catalog/entities", Some(&token)).await?;
        let wall = begun.elapsed();
        if !answer.status.is_success() {
            bail!("the catalog answered {}", answer.status);
        }
        lists.bytes = answer.body.len();
        if round > 0 {
            lists.wall.push(wall);
            lists.cpu.push(platform.cpu()?.saturating_sub(before));
        }
    }
    Ok(lists)
}

async fn token(platform: &Platform) -> Result<String> {
    let mut web = Web::connect(&platform.data, SIGN_IN).await?;
    platform.administrator.sign_in(&mut web).await
}

/// Waits until as many are there; how many.
async fn arrive(platform: &Platform, begun: Instant, count: usize) -> Result<u64> {
    let path = "/api/catalog/entities/by-query?limit=1&filter=metadata.tags=golden-path";
    let (mut signed_in, mut token_now) = (Instant::now(), token(platform).await?);
    loop {
        if signed_in.elapsed() > SIGNED_IN {
            (signed_in, token_now) = (Instant::now(), token(platform).await?);
        }
        // A new connection each time: one that nobody uses for a while may be closed.
        let mut web = Web::connect(&platform.data, PORTAL).await?;
        let page = web.get(path, Some(&token_now)).await?.json()?;
        let held = page["totalItems"].as_u64().unwrap_or_default();
        if held >= count as u64 {
            return Ok(held);
        }
        if begun.elapsed() > PATIENCE {
            bail!("{held} of {count} entities were there after {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A repository's files. JSON is YAML, and entities are those of the other benchmark.
fn write(tree: &Path, number: usize, range: std::ops::Range<usize>) -> Result<()> {
    let folder = tree.join("catalog");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        tree.join("catalog-info.yaml"),
        WHO.replace("NUMBER", &number.to_string()),
    )?;
    let all: Vec<usize> = range.collect();
    for (file, part) in all.chunks(IN_FILE).enumerate() {
        let mut text = String::new();
        for entity in part {
            let mut entity = crate::catalog::record(*entity).entity;
            // Where it comes from is the catalog's to say.
            if let Some(annotations) = entity["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|name, _| !name.contains("location"));
            }
            let _ = writeln!(text, "---\n{entity}");
        }
        std::fs::write(folder.join(format!("part-{file}.yaml")), text)?;
    }
    Ok(())
}

async fn push(platform: &Platform, tree: &Path, name: &str) -> Result<()> {
    let url = platform
        .command(&["repo", "create", name, "--with-token"])
        .await?;
    let script = "git init -q -b main . && git add . && git commit -qm entities && git push -q \"$URL\" main";
    let resolve = format!(
        "git.fairway.localhost:{}:127.0.0.1",
        super::web::port(&platform.data)?
    );
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(tree)
        .env("URL", &url)
        .env("GIT_SSL_CAINFO", platform.data.join("pki/ca.crt"))
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "bench"),
            ("GIT_AUTHOR_EMAIL", "bench@example.com"),
            ("GIT_COMMITTER_NAME", "bench"),
            ("GIT_COMMITTER_EMAIL", "bench@example.com"),
            // Not every resolver knows that names below localhost are this machine.
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "http.curloptResolve"),
            ("GIT_CONFIG_VALUE_0", resolve.as_str()),
        ])
        .output()
        .await
        .context("cannot run git")?;
    if !output.status.success() {
        bail!(
            "entities were not pushed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
