//! Waiting for what a server does by itself.

use std::time::{Duration, Instant};

/// How long a change may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `look` finds, as soon as it finds something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{what} did not come within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
