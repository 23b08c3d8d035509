//! Follows the key files: takes new keys into use, seals values again under the new one, and says how far it is.
//!
//! `fairway keys rotate` writes a file; this notices within a second. The state of the work is `keys/rotation.json`, from
//! which `fairway keys` reads. A key counts as unused when no value needs it, none can be on its way any more, and
//! history has forgotten the last that did.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_store::Revision;
use fairway_kernel_store::value::reseal;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use crate::data_dir::{DataDir, read_if_there, write_private};
use crate::signing_keys;

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// After this, no request is under way any more that sealed something before the keys changed.
const UNDER_WAY: Duration = Duration::from_secs(61);
/// Between two attempts after a failure, and between two looks at history.
const RETRY: Duration = Duration::from_secs(10);
/// Where objects begin; what lies outside is never sealed.
pub(crate) const OBJECTS: &[u8] = b"/";

/// How far a rotation is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RotationStatus {
    /// The process that wrote this.
    pub pid: u32,
    /// The key that seals.
    pub current: String,
    /// Values by the old key that they still need.
    pub left: BTreeMap<String, u64>,
    /// Whether the past may still need an old key.
    pub in_history: bool,
}

impl RotationStatus {
    /// What the running server says.
    pub(crate) fn read(data: &DataDir) -> anyhow::Result<Option<Self>> {
        let path = data.rotation();
        match read_if_there(&path)? {
            None => Ok(None),
            Some(content) => {
                serde_json::from_slice(&content).with_context(|| format!("{} is damaged", path.display()))
            }
        }
    }
}

/// Loads the retired signing keys, and follows all key files as long as the kernel lives.
pub(super) fn follow(kernel: &Arc<Kernel>, data: &DataDir) -> anyhow::Result<()> {
    load_signing(kernel, data)?;
    let remember = data.clone();
    kernel.tokens.remember_with(Box::new(move |key, until| {
        signing_keys::remember(&remember, key, until).map_err(|e| format!("{e:#}"))
    }));
    tokio::spawn(run(Arc::downgrade(kernel), data.clone()));
    Ok(())
}

fn load_signing(kernel: &Kernel, data: &DataDir) -> anyhow::Result<()> {
    let (key, until) = kernel.tokens.longest();
    signing_keys::extend(data, &key, until)?;
    let signing = signing_keys::load_or_create(data)?;
    let retired = signing_keys::retired(data)?;
    let retired: Vec<_> = retired
        .iter()
        .map(signing_keys::Retired::key)
        .collect::<Result<_, _>>()?;
    kernel
        .tokens
        .replace_keys(&signing, &retired)
        .map_err(|e| anyhow!(e))
}

/// What tells one version of a file from another.
type Stamp = Option<(u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

fn stamps(data: &DataDir) -> [Stamp; 3] {
    let files: [PathBuf; 3] = [
        data.encryption_keys(),
        data.token_key(),
        data.retired_token_keys(),
    ];
    files.map(|path| stamp(&path))
}

/// What is left to do of a rotation.
enum Work {
    /// Nothing: there is one key, or the old ones are unused.
    None,
    /// Values may need an old key.
    Reseal,
    /// Only history may.
    History { since: Instant, forget: Revision },
}

async fn run(kernel: Weak<Kernel>, data: DataDir) {
    let mut seen = stamps(&data);
    let mut changed = Instant::now();
    let mut work = Work::Reseal;
    let mut next = Instant::now();
    loop {
        let Some(kernel) = kernel.upgrade().filter(|k| !*k.shutdown.borrow()) else {
            return;
        };
        let now = stamps(&data);
        if now != seen {
            seen = now;
            let loaded = kernel
                .storage
                .keys
                .reload(&data.encryption_keys())
                .map_err(anyhow::Error::from)
                .and_then(|()| load_signing(&kernel, &data));
            match loaded {
                Ok(()) => info!("the keys have been read again"),
                Err(error) => warn!("the keys could not be read again, those before stay in use: {error:#}"),
            }
            (changed, work, next) = (Instant::now(), Work::Reseal, Instant::now());
        }
        if Instant::now() >= next {
            next = Instant::now() + RETRY;
            match step(&kernel, &data, &work, changed).await {
                Ok(Some(new)) => (work, next) = (new, Instant::now()),
                Ok(None) => {}
                Err(error) => warn!("a key rotation could not go on; it will be tried again: {error:#}"),
            }
        }
        drop(kernel);
        tokio::time::sleep(LOOK).await;
    }
}

/// Goes on with the work; `Some` is what comes next.
async fn step(
    kernel: &Kernel,
    data: &DataDir,
    work: &Work,
    changed: Instant,
) -> anyhow::Result<Option<Work>> {
    let (store, keys) = (kernel.storage.store.as_ref(), &kernel.storage.keys);
    let mut status = RotationStatus {
        pid: std::process::id(),
        current: format!("{:08x}", keys.current()),
        ..RotationStatus::default()
    };
    let single = keys.ids().len() == 1;
    match work {
        Work::None => return Ok(None),
        Work::Reseal if single => {}
        Work::Reseal => {
            status.in_history = true;
            status.left = left(&reseal::survey(store, OBJECTS).await?, keys.current());
            write(data, &status)?;
            let done = reseal::reseal(store, keys, OBJECTS).await?;
            let survey = reseal::survey(store, OBJECTS).await?;
            status.left = left(&survey, keys.current());
            write(data, &status)?;
            if done > 0 {
                info!(
                    values = done,
                    key = status.current,
                    "values were sealed under the new key"
                );
            }
            let next = (status.left.is_empty()).then_some(Work::History {
                since: Instant::now(),
                forget: survey.revision,
            });
            return Ok(next);
        }
        Work::History { since, .. } if since.duration_since(changed) < UNDER_WAY => {
            // Requests that were under way when the keys changed may have sealed with the old one since.
            let late = changed.elapsed() >= UNDER_WAY;
            return Ok(late.then_some(Work::Reseal));
        }
        Work::History { forget, .. } => {
            if !reseal::is_forgotten(store, *forget).await? {
                return Ok(None);
            }
        }
    }
    write(data, &status)?;
    if !single {
        info!("no value needs an old key any more; `fairway keys prune` drops it");
    }
    Ok(Some(Work::None))
}

/// Values by the other keys that they need, as they are shown.
pub(crate) fn left(survey: &reseal::Survey, current: u32) -> BTreeMap<String, u64> {
    let others = survey.by_key.iter().filter(|(id, _)| **id != current);
    others.map(|(id, count)| (format!("{id:08x}"), *count)).collect()
}

fn write(data: &DataDir, status: &RotationStatus) -> anyhow::Result<()> {
    write_private(&data.rotation(), &serde_json::to_vec_pretty(status)?)
}
