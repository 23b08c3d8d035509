//! Forgetting: history older than a few minutes is dropped, as upstream's API server has etcd do it.

use std::sync::{Arc, Weak};

use fairway_kernel_store::{CompactionSchedule, Store};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::kernel::Kernel;

/// Compacts the store from time to time, as long as the kernel lives.
pub(crate) fn start(kernel: &Arc<Kernel>) {
    tokio::spawn(run(Arc::downgrade(kernel), Arc::clone(&kernel.storage.store)));
}

async fn run(kernel: Weak<Kernel>, store: Arc<dyn Store>) {
    let mut schedule = CompactionSchedule::default();
    let began = Instant::now();
    loop {
        tokio::time::sleep(schedule.interval()).await;
        if kernel.upgrade().is_none_or(|k| *k.shutdown.borrow()) {
            return;
        }
        let Ok(revision) = store.revision().await else {
            continue;
        };
        let Some(before) = schedule.observe(began.elapsed(), revision) else {
            continue;
        };
        match store.compact(before).await {
            Ok(()) => debug!(revision = before.0, "history has been compacted"),
            Err(error) => warn!(%error, "history could not be compacted; it will be tried again"),
        }
    }
}
