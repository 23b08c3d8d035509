//! Certificates that may change while the controllers run, for those who copy them into objects.

use std::sync::Arc;

use fairway_controller::Shutdown;
use tokio::sync::watch;

/// Certificates in PEM, as they are now.
pub type Certificates = watch::Receiver<Arc<str>>;

/// Calls `again` whenever there are other certificates.
pub(crate) async fn follow(mut certificates: Certificates, mut shutdown: Shutdown, again: impl Fn()) {
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            // Whoever wired us will never change them.
            changed = certificates.changed() => if changed.is_err() { return },
        }
        again();
    }
}
