//! The control socket: how other commands of the same user talk to the running server.
//!
//! `DIR/control.sock` lies in a directory that only its owner can enter. A command is one line; the answer is whatever the
//! command gives, until the end. There is one command, `backup`, whose answer is a backup without keys.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_store::Store;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use crate::backup::snapshot;
use crate::data_dir::DataDir;

/// Commands at once; each holds the keys of the whole store in memory.
const AT_ONCE: usize = 2;
const COMMAND_BYTES: u64 = 256;
/// Time to say what is wanted.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nobody needs longer to take a picture of the store than this, and a reader that has stopped reading must not stay.
const LONGEST: Duration = Duration::from_secs(3600);

/// The socket of this server.
pub(super) struct Control {
    task: Option<JoinHandle<()>>,
    data: DataDir,
}

/// Listens. A server whose socket cannot be made serves all the same.
pub(super) fn start(data: &DataDir, store: &Arc<dyn Store>) -> Control {
    let task = match bind(data) {
        Ok(listener) => Some(tokio::spawn(serve(listener, Arc::clone(store)))),
        Err(error) => {
            warn!(%error, "the control socket could not be made; `fairway backup create` will not work while this server runs");
            None
        }
    };
    Control {
        task,
        data: data.clone(),
    }
}

impl Control {
    /// Ends it, and what is under way with it.
    pub(super) async fn end(self) {
        if let Some(task) = self.task {
            task.abort();
            let _ = task.await;
            let _ = self.data.control().with_path(|path| fs::remove_file(path));
        }
    }
}

fn bind(data: &DataDir) -> std::io::Result<UnixListener> {
    data.control().with_path(|path| {
        // The store's lock is ours, so a socket that is there was left by a server that is gone.
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    })
}

async fn serve(listener: UnixListener, store: Arc<dyn Store>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    loop {
        while under_way.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let store = Arc::clone(&store);
                under_way.spawn(async move {
                    let _place = place;
                    match tokio::time::timeout(LONGEST, answer(stream, store.as_ref())).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => warn!(error = format!("{error:#}"), "a control command failed"),
                        Err(_) => warn!("a control command took too long"),
                    }
                });
            }
            Err(error) => {
                warn!(%error, "a control connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn answer(mut stream: UnixStream, store: &dyn Store) -> anyhow::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut line = String::new();
    let mut reading = BufReader::new(reading.take(COMMAND_BYTES));
    tokio::time::timeout(PATIENCE, reading.read_line(&mut line))
        .await
        .context("no command came in time")?
        .context("the command could not be read")?;
    match line.trim_end() {
        "backup" => {
            snapshot::send(store, Clock.rfc3339(), &mut writing).await?;
            info!("a backup was taken");
            Ok(())
        }
        other => bail!("there is no control command {other:?}"),
    }
}
