//! Sessions whose time is up, or whose user is gone, are removed: one task for all realms.

use std::sync::Arc;
use std::time::Duration;

use fairway_api::identity::SESSION;
use fairway_controller::Shutdown;
use tracing::warn;

use crate::provider::Provider;
use crate::realms::now;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(60);
/// Removed at most in one go: the rest waits for the next.
const BATCH: usize = 1_000;

/// Runs until the end.
pub async fn run(provider: Arc<Provider>, mut shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            () = shutdown.wait() => return,
        }
        for (cluster, name) in provider.realms.read(|all| all.over(now(), BATCH)) {
            if let Err(failure) = provider.objects.delete(&cluster, SESSION, &name).await {
                warn!(%failure, "a session that is over was not removed");
                break;
            }
        }
    }
}
