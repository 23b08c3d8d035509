//! What is measured, in order: an idle server, then objects created, read, applied, listed and watched, then CRDs.
//! The order matters: memory after 10,000 objects is read when there are exactly so many, and lists run on those.

pub(crate) mod crds;
mod watching;

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::client::{Call, Client};
use crate::figures::{Figures, Load, milliseconds};
use crate::load;
use crate::server::Server;

pub(crate) const MEBIBYTE: f64 = (1 << 20) as f64;

/// How many operations each measurement makes.
pub(crate) struct Sizes {
    scale: f64,
}

impl Sizes {
    pub(crate) fn scaled(scale: f64) -> Self {
        Self { scale }
    }

    fn of(&self, full: usize) -> usize {
        ((full as f64 * self.scale) as usize).max(20)
    }
}

pub(crate) async fn measure(server: &Server, sizes: &Sizes) -> Result<Figures> {
    let mut figures = Figures::default();
    idle(server, &mut figures).await?;
    create(server, sizes, &mut figures).await.context("create")?;
    list(server, sizes, &mut figures).await.context("list")?;
    get(server, sizes, &mut figures).await.context("get")?;
    apply(server, sizes, &mut figures)
        .await
        .context("server-side apply")?;
    watching::measure(server, sizes, &mut figures)
        .await
        .context("watch")?;
    crds::measure(server, &mut figures).await.context("CRDs")?;
    Ok(figures)
}

async fn idle(server: &Server, figures: &mut Figures) -> Result<()> {
    if let Some(ready_after) = server.ready_after {
        figures.set("ready", "wall", milliseconds(ready_after));
        figures.set("ready", "cpu", milliseconds(server.cpu()?));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (before, started) = (server.cpu()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let share = (server.cpu()? - before).as_secs_f64() / started.elapsed().as_secs_f64();
    figures.set("idle", "cpu percent", share * 100.0);
    figures.set("idle", "memory", server.resident()? as f64 / MEBIBYTE);
    figures.set("idle", "anonymous", server.anonymous()? as f64 / MEBIBYTE);
    Ok(())
}

async fn create(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    for namespace in ["many", "some", "few", "applied", "watched"] {
        make_namespace(server, namespace).await?;
    }
    let create_in = |namespace: &'static str| {
        move |number: usize| Call::create(collection(namespace), config_map(number, "first"))
    };
    figures.set_load(
        "create, 16 clients",
        &load::run(server, 16, sizes.of(10_000), create_in("many")).await?,
    );
    figures.set("10,000 objects", "memory", server.resident()? as f64 / MEBIBYTE);
    figures.set_load(
        "create, 64 clients",
        &load::run(server, 64, sizes.of(10_000), create_in("some")).await?,
    );
    figures.set_load(
        "create, 1 client",
        &load::run(server, 1, sizes.of(2_000), create_in("few")).await?,
    );
    Ok(())
}

async fn get(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    let objects = sizes.of(10_000);
    for (operation, clients, operations) in [
        ("GET, 1 client", 1, sizes.of(3_000)),
        ("GET, 16 clients", 16, sizes.of(10_000)),
        ("GET, 64 clients", 64, sizes.of(10_000)),
    ] {
        // A stride that shares no factor with the count visits every object, and not in the order of creation.
        let path = move |number: usize| {
            Call::get(format!(
                "{}/{}",
                collection("many"),
                name(number * 7919 % objects)
            ))
        };
        figures.set_load(operation, &load::run(server, clients, operations, path).await?);
    }
    Ok(())
}

async fn apply(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    let objects = sizes.of(5_000);
    let apply = |value: &'static str| {
        move |number: usize| {
            let path = format!(
                "{}/{}?fieldManager=bench",
                collection("applied"),
                name(number % objects)
            );
            Call::apply(path, config_map(number % objects, value))
        }
    };
    figures.set_load(
        "apply, create, 16 clients",
        &load::run(server, 16, objects, apply("first")).await?,
    );
    figures.set_load(
        "apply, update, 16 clients",
        &load::run(server, 16, objects, apply("second")).await?,
    );
    figures.set_load(
        "apply, update, 1 client",
        &load::run(server, 1, sizes.of(1_000), apply("third")).await?,
    );
    Ok(())
}

async fn list(server: &Server, sizes: &Sizes, figures: &mut Figures) -> Result<()> {
    let client = Client::connect(&server.endpoint).await?;
    let path = collection("many");
    let expected = sizes.of(10_000);
    for (operation, gzip) in [("LIST 10,000", false), ("LIST 10,000, gzip", true)] {
        let call = || {
            if gzip {
                Call::get(&path).accepting_gzip()
            } else {
                Call::get(&path)
            }
        };
        // The first one is looked at, and warms up what there is to warm.
        let reply = client.send(call()).await?;
        let is_gzip = reply
            .headers
            .get("content-encoding")
            .is_some_and(|encoding| encoding == "gzip");
        ensure!(
            is_gzip == gzip,
            "{operation}: the answer's encoding is not what was asked for"
        );
        let body = reply.success()?;
        figures.set(operation, "megabytes", body.len() as f64 / 1e6);
        let found = count_items(&body, gzip)?;
        // Where controllers run, every namespace has one more: the root certificate.
        ensure!(
            found == expected || found == expected + 1,
            "{operation}: {found} items instead of {expected}"
        );

        let mut latencies = Vec::new();
        let (cpu, started) = (server.cpu()?, Instant::now());
        for _ in 0..30 {
            let asked = Instant::now();
            client.send(call()).await?.success()?;
            latencies.push(asked.elapsed());
        }
        let wall = started.elapsed();
        tokio::time::sleep(Duration::from_millis(300)).await;
        figures.set_load(operation, &Load::new(latencies, wall, server.cpu()? - cpu));
    }
    Ok(())
}

fn count_items(body: &[u8], gzip: bool) -> Result<usize> {
    let mut plain = Vec::new();
    if gzip {
        flate2::read::GzDecoder::new(body).read_to_end(&mut plain)?;
    } else {
        plain.extend_from_slice(body);
    }
    let list: serde_json::Value = serde_json::from_slice(&plain)?;
    Ok(list["items"].as_array().map_or(0, Vec::len))
}

pub(crate) async fn make_namespace(server: &Server, name: &str) -> Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
    let client = Client::connect(&server.endpoint).await?;
    client
        .send(Call::create("/api/v1/namespaces", body))
        .await?
        .success()?;
    Ok(())
}

pub(crate) fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

pub(crate) fn name(number: usize) -> String {
    format!("object-{number:06}")
}

/// A small object like most that a cluster holds: a label, two keys.
pub(crate) fn config_map(number: usize, value: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name(number), "labels": {"app": "bench"}},
        "data": {"number": number.to_string(), "value": value},
    })
    .to_string()
}
