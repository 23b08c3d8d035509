//! The platform when nobody asks it anything: memory, and the share of a core that it takes all the same.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Platform;

/// How often memory is looked at: what a start has left behind is given back now and then.
const LOOKS: u32 = 10;

pub(super) struct Idle {
    /// The most that was seen, in bytes.
    pub(super) resident: u64,
    /// Percent of a core.
    pub(super) share: f64,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} MB, {:.2} % of a core",
            self.resident as f64 / 1e6,
            self.share
        )
    }
}

pub(super) async fn measure(platform: &Platform, rest: Duration) -> Result<Idle> {
    platform.settle().await?;
    let (begun, before) = (Instant::now(), platform.cpu()?);
    let mut resident = 0;
    for _ in 0..LOOKS {
        tokio::time::sleep(rest / LOOKS).await;
        resident = resident.max(platform.resident()?);
    }
    let used = platform.cpu()?.saturating_sub(before);
    Ok(Idle {
        resident,
        share: used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0,
    })
}
