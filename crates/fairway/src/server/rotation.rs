//! Certificates change while the server runs: because they are due, because `fairway certs` was called, or because somebody
//! has put new files where the given ones were.
//!
//! One task looks at the files every two seconds (a few `stat` calls) and at the clock. What it loads takes effect at once:
//! new connections are served with it, requests for certificates are signed with it, and `kube-root-ca.crt` follows. If
//! something cannot be loaded, the server goes on with what it has, and says so.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use fairway_controller::Shutdown;
use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_apiserver::http::listener::Tls;
use fairway_kernel_apiserver::pki::{Authority, Pair};
use fairway_kernel_controllers::{CertificateSigner, SigningJob};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::identity::{Identity, Source};

const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A renewal that fails is tried again after this time, and each failure is a line in the log.
const RETRY_SECONDS: i64 = 60;

/// What is in use now. Everything that needs it holds a part of this.
#[derive(Clone)]
pub(super) struct Live {
    /// For the listener.
    pub tls: Arc<ArcSwap<Tls>>,
    /// For `kube-root-ca.crt`.
    pub trust: watch::Sender<Arc<str>>,
    /// For `extension-apiserver-authentication`.
    pub client_trust: watch::Sender<Arc<str>>,
    authority: Arc<ArcSwap<Authority>>,
    ends: Arc<ArcSwap<Vec<(&'static str, i64)>>>,
}

impl Live {
    pub(super) fn new(identity: &Identity) -> Self {
        Self {
            tls: Arc::new(ArcSwap::from(Arc::clone(&identity.tls))),
            trust: watch::channel(Arc::clone(&identity.trust)).0,
            client_trust: watch::channel(Arc::clone(&identity.client_trust)).0,
            authority: Arc::new(ArcSwap::from(Arc::clone(&identity.authority))),
            ends: Arc::new(ArcSwap::from_pointee(identity.ends.clone())),
        }
    }

    fn take(&self, identity: &Identity) {
        self.tls.store(Arc::clone(&identity.tls));
        self.authority.store(Arc::clone(&identity.authority));
        self.ends.store(Arc::new(identity.ends.clone()));
        for (sender, certificates) in [
            (&self.trust, &identity.trust),
            (&self.client_trust, &identity.client_trust),
        ] {
            sender.send_if_modified(|before| {
                let changed = *before != *certificates;
                *before = Arc::clone(certificates);
                changed
            });
        }
    }

    /// A certificate of our own authority for these names.
    pub(super) fn serving(&self, names: &[String], seconds: i64) -> anyhow::Result<Pair> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(self
            .authority
            .load()
            .serving(&[], &names, seconds, Clock.unix())?)
    }

    /// When each certificate ends, for who is called at night.
    pub(super) fn figures(&self) -> String {
        let name = "fairway_certificate_expiration_timestamp_seconds";
        let mut text = format!(
            "# HELP {name} When a certificate of this installation ends, in seconds since 1970.\n# TYPE {name} gauge\n"
        );
        for (certificate, end) in self.ends.load().iter() {
            let _ = writeln!(text, "{name}{{certificate=\"{certificate}\"}} {end}");
        }
        text
    }
}

impl CertificateSigner for Live {
    fn sign(&self, job: &SigningJob) -> Result<String, String> {
        let seconds = i64::try_from(job.duration.as_secs()).unwrap_or(i64::MAX);
        self.authority
            .load()
            .sign_request(&job.request, &job.usages, seconds, Clock.unix())
            .map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    }
}

/// Follows files and clock until the end.
pub(super) fn start(source: Source, first: &Identity, live: Live, mut shutdown: Shutdown) -> JoinHandle<()> {
    let mut next_renewal = first.next_renewal;
    let source = Arc::new(source);
    let mut seen = stamps(&source.files());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let now = Clock.unix();
            let stamped = stamps(&source.files());
            if stamped == seen && now < next_renewal {
                continue;
            }
            // What changes while we load is seen at the next look.
            seen = stamped;
            let loading = Arc::clone(&source);
            match tokio::task::spawn_blocking(move || loading.load(now)).await {
                Ok(Ok(identity)) => {
                    next_renewal = identity.next_renewal;
                    live.take(&identity);
                    seen = stamps(&source.files());
                    info!("certificates have been loaded again");
                }
                Ok(Err(error)) => {
                    warn!(
                        error = format!("{error:#}"),
                        "certificates could not be loaded; the ones in use stay"
                    );
                    next_renewal = now + RETRY_SECONDS;
                }
                Err(error) => warn!(%error, "loading certificates was given up"),
            }
        }
    })
}

/// What tells that a file is another one, without reading it.
fn stamps(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    files
        .iter()
        .map(|path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        })
        .collect()
}
