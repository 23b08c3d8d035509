//! Logging in over SSH, as soon as it is possible.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::process::Command;

/// A boot that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks at whether anybody answers.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a server may take to say who it is, once it has been reached.
const GREETING: Duration = Duration::from_secs(5);

pub(super) struct Key {
    path: PathBuf,
    pub(super) public: String,
}

impl Key {
    pub(super) async fn new(directory: &Path) -> Result<Self> {
        let path = directory.join("key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f"])
            .arg(&path)
            .status()
            .await
            .context("cannot run ssh-keygen")?;
        if !made.success() {
            bail!("ssh-keygen failed");
        }
        let public = std::fs::read_to_string(path.with_extension("pub"))?
            .trim()
            .to_owned();
        Ok(Self { path, public })
    }

    /// Returns as soon as somebody could log in at a port of this host.
    pub(super) async fn login(&self, port: u16) -> Result<()> {
        let began = Instant::now();
        loop {
            if answers(port).await && self.try_login(port).await? {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                bail!("nobody could log in at port {port} within {PATIENCE:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_login(&self, port: u16) -> Result<bool> {
        let done = Command::new("ssh")
            .arg("-i")
            .arg(&self.path)
            .args([
                "-F",
                "none",
                "-o",
                "BatchMode=yes",
                "-o",
                "StrictHostKeyChecking=no",
            ])
            .args([
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "LogLevel=ERROR",
                "-o",
                "ConnectTimeout=10",
            ])
            .args(["-p", &port.to_string(), "root@127.0.0.1", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await
            .context("cannot run ssh")?;
        Ok(done.success())
    }
}

/// Whether an SSH server says who it is. Asking so costs next to nothing, unlike trying to log in.
async fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let mut said = [0; 4];
    let heard = tokio::time::timeout(GREETING, stream.read_exact(&mut said)).await;
    matches!(heard, Ok(Ok(_))) && &said == b"SSH-"
}
