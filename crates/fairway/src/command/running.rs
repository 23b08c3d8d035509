//! The server that runs on a data directory, as other commands find it.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::config::domain::Domain;
use crate::data_dir::{DataDir, read_if_there, write_private};

/// What a running server writes about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its process.
    pub pid: u32,
    /// When the process was started, in the kernel's ticks: a process id alone may have been given to somebody else.
    pub started: u64,
    /// Where the Kubernetes API listens.
    pub listen: SocketAddr,
    /// Where the web listener is; a server of an older version has none.
    #[serde(default)]
    pub web_listen: Option<SocketAddr>,
    /// What its sites are named below.
    #[serde(default)]
    pub domain: Domain,
    /// Since when, RFC 3339.
    pub since: String,
}

impl Running {
    /// This process.
    pub(crate) fn this(listen: SocketAddr, web: (SocketAddr, Domain), since: String) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: start_ticks(pid).unwrap_or(0),
            listen,
            web_listen: Some(web.0),
            domain: web.1,
            since,
        }
    }

    /// Where Git repositories are, if the server that wrote this hosts some.
    pub(crate) fn git(&self) -> Option<String> {
        self.site(&self.domain.git())
    }

    /// Where the portal is, if the server that wrote this has one.
    pub(crate) fn portal(&self) -> Option<String> {
        self.site(&self.domain.portal())
    }

    /// Where people sign in, if the server that wrote this has such a place.
    pub(crate) fn sign_in(&self) -> Option<String> {
        self.site(&self.domain.sign_in())
    }

    fn site(&self, host: &str) -> Option<String> {
        let port = self.web_listen?.port();
        Some(format!("https://{host}:{port}"))
    }

    /// Writes it down.
    pub(crate) fn write(&self, data: &DataDir) -> anyhow::Result<()> {
        write_private(&data.running(), serde_json::to_string_pretty(self)?.as_bytes())
    }

    /// The server that runs on this directory, if one does.
    pub(crate) fn find(data: &DataDir) -> anyhow::Result<Option<Self>> {
        let path = data.running();
        let Some(content) = read_if_there(&path)? else {
            return Ok(None);
        };
        let running: Self =
            serde_json::from_slice(&content).with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(running).filter(Self::is_alive))
    }

    /// Whether the process is still the one that wrote this.
    pub(crate) fn is_alive(&self) -> bool {
        start_ticks(self.pid).is_some_and(|started| started == self.started)
    }

    /// Removes what this process wrote.
    pub(crate) fn forget(data: &DataDir) {
        let _ = std::fs::remove_file(data.running());
    }
}

/// The start time of a process: the 22nd field of its `stat`, counted after the command's name in parentheses.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    // A zombie has ended; only its parent has not noticed.
    if fields.split_whitespace().next() == Some("Z") {
        return None;
    }
    fields.split_whitespace().nth(19)?.parse().ok()
}
