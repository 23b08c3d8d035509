//! From sending a create to seeing its event in a watch on another connection: what a controller waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;

use super::{Sizes, collection, config_map};
use crate::client::{Call, Client};
use crate::figures::{Figures, milliseconds, percentile};
use crate::load;
use crate::server::Server;

/// Events may be late, but not that late.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn measure(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    let one = sizes.of(1_000);
    let many = sizes.of(5_000);
    for (operation, writers, first, count) in [
        ("watch, 1 writer", 1, 0, one),
        ("watch, 16 writers", 16, one, many),
    ] {
        let mut latencies = create_and_watch(server, writers, first, count).await?;
        latencies.sort_unstable();
        figures.set(operation, "p50", milliseconds(percentile(&latencies, 0.50)));
        figures.set(operation, "p99", milliseconds(percentile(&latencies, 0.99)));
    }
    Ok(())
}

async fn create_and_watch(
    server: &Server,
    writers: usize,
    first: usize,
    count: usize,
) -> Result<Vec<Duration>> {
    let path = collection("watched");
    let watcher = Client::connect(&server.endpoint).await?;
    let revision = list_revision(&watcher, &path).await?;
    let stream = watcher
        .stream(format!("{path}?watch=1&resourceVersion={revision}"))
        .await?;

    let begin = Instant::now();
    let sent: Arc<Vec<AtomicU64>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let seeing = tokio::spawn(see_all(stream, first, count, begin));

    let writers = Client::connect_many(&server.endpoint, writers).await?;
    let sending = Arc::clone(&sent);
    let call = move |number: usize| {
        let body = config_map(first + number, "watched");
        sending[number].store(nanoseconds(begin.elapsed()), Ordering::Relaxed);
        Call::create(collection("watched"), body)
    };
    load::send_all(writers, count, call).await?;
    let seen = tokio::time::timeout(PATIENCE, seeing)
        .await
        .context("not every event arrived")???;
    Ok(seen
        .iter()
        .zip(sent.iter())
        .map(|(seen, sent)| seen.saturating_sub(Duration::from_nanos(sent.load(Ordering::Relaxed))))
        .collect())
}

async fn list_revision(client: &Client, path: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct List {
        metadata: ListMetadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMetadata {
        resource_version: String,
    }
    let body = client
        .send(Call::get(format!("{path}?limit=1")))
        .await?
        .success()?;
    let list: List = serde_json::from_slice(&body).context("a list without a resourceVersion")?;
    Ok(list.metadata.resource_version)
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    name: &'a str,
}

/// When each object's event was seen, in the order of their numbers.
async fn see_all(mut stream: Incoming, first: usize, count: usize, begin: Instant) -> Result<Vec<Duration>> {
    let mut seen = vec![Duration::ZERO; count];
    let mut missing = count;
    let mut buffer = BytesMut::new();
    while missing > 0 {
        let Some(frame) = stream.frame().await else {
            bail!("the watch ended with {missing} events missing")
        };
        let Ok(data) = frame?.into_data() else { continue };
        let now = begin.elapsed();
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line = buffer.split_to(end + 1);
            let event: Event<'_> = serde_json::from_slice(&line).context("an event that is not JSON")?;
            let number: usize = event
                .object
                .metadata
                .name
                .trim_start_matches("object-")
                .parse()
                .context("a foreign object")?;
            if event.kind != "ADDED" || number < first || number - first >= count {
                bail!(
                    "unexpected event {} for {}",
                    event.kind,
                    event.object.metadata.name
                );
            }
            seen[number - first] = now;
            missing -= 1;
        }
    }
    Ok(seen)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
