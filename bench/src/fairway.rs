//! Starts Fairway as a user would: `fairway up` in the foreground, everything else by default, durable writes included.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use crate::kubeconfig;
use crate::server::{self, Server};

pub(crate) async fn start(binary: &Path, directory: &Path) -> Result<Server> {
    start_at(binary, directory, server::free_port()?).await
}

/// The same, at a port that an earlier start has had: at another one, a server has to tell everybody its new address.
pub(crate) async fn start_at(binary: &Path, directory: &Path, port: u16) -> Result<Server> {
    start_with(binary, directory, port, &[]).await
}

/// The same, with flags that a user would give.
pub(crate) async fn start_with(binary: &Path, directory: &Path, port: u16, flags: &[&str]) -> Result<Server> {
    let directory = server::absolute(directory)?;
    let data = directory.join("data");
    let log = directory.join("fairway.log");
    let mut arguments = vec![
        "up".to_owned(),
        format!("--data={}", data.display()),
        format!("--listen=127.0.0.1:{port}"),
    ];
    arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
    let started = Instant::now();
    let mut child = server::spawn(&server::absolute(binary)?, &arguments, &log)?;
    let path = data.join("kubeconfig");
    server::until("fairway", &mut child, &log, async || {
        // Read anew each time: an earlier start on the same data may have left one that names another port.
        match kubeconfig::endpoint(&path) {
            Ok(endpoint) => server::is_ready(&endpoint).await,
            Err(_) => false,
        }
    })
    .await?;
    let ready_after = started.elapsed();
    Ok(Server::new(
        kubeconfig::endpoint(&path)?,
        vec![child],
        ready_after,
    ))
}
