//! Logging in over SSH, as soon as it is possible.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::process::Command;

/// A boot that takes longer has failed: a whole Debian whose processor is emulated takes minutes.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks at whether anybody answers.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a server may take to say who it is, once it has been reached, and which part of the time so far if that is more.
///
/// QEMU's own network takes connections before there is anybody in the guest to answer them, and such a one is never answered: whoever
/// waits for it measures his own patience. So it is short beside what is measured. It grows, as a guest that takes minutes to boot
/// also takes longer to answer.
const GREETING: Duration = Duration::from_millis(200);
const GREETING_PART: u32 = 50;

/// How ssh says that it did not get as far as the command, and how long it is tried again.
const UNREACHED: i32 = 255;
const PATIENCE_TO_RUN: Duration = Duration::from_secs(60);

/// Who logs in: root would be let in by some images only.
pub(crate) const USER: &str = "bench";

pub(crate) struct Key {
    path: PathBuf,
    pub(crate) public: String,
}

impl Key {
    pub(crate) async fn new(directory: &Path) -> Result<Self> {
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
    pub(crate) async fn login(&self, port: u16) -> Result<()> {
        let began = Instant::now();
        loop {
            if answers(port, greeting(began.elapsed())).await && self.try_login(port).await? {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                bail!("nobody could log in at port {port} within {PATIENCE:?}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_login(&self, port: u16) -> Result<bool> {
        let mut ssh = self.ssh(port, "true");
        let done = ssh.stdout(Stdio::null()).stderr(Stdio::null()).status();
        Ok(done.await.context("cannot run ssh")?.success())
    }

    /// What a command in the guest prints; it is given what is in a file, if any.
    pub(crate) async fn run(&self, port: u16, command: &str, input: Option<&Path>) -> Result<String> {
        let began = Instant::now();
        let done = loop {
            let mut ssh = self.ssh(port, command);
            if let Some(input) = input {
                ssh.stdin(std::fs::File::open(input)?);
            }
            let done = ssh.output().await.context("cannot run ssh")?;
            // A server takes a few strangers at a time only, and those who asked whether it answers may still be there.
            if done.status.code() != Some(UNREACHED) || began.elapsed() > PATIENCE_TO_RUN {
                break done;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr);
            bail!("{command} in the guest ended with {}: {why}{said}", done.status);
        }
        Ok(said)
    }

    fn ssh(&self, port: u16, command: &str) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-i")
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
            .args(["-p", &port.to_string(), &format!("{USER}@127.0.0.1"), command])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        ssh
    }
}

/// How long is waited for a greeting after so much time.
fn greeting(waited: Duration) -> Duration {
    GREETING.max(waited / GREETING_PART)
}

/// Whether an SSH server says who it is, on a new connection. Asking so costs next to nothing, unlike trying to log in.
async fn answers(port: u16, patience: Duration) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
        return false;
    };
    let mut said = [0; 4];
    let heard = tokio::time::timeout(patience, stream.read_exact(&mut said)).await;
    matches!(heard, Ok(Ok(_))) && &said == b"SSH-"
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn greetings_are_waited_for_shortly_beside_what_is_measured() {
        for (waited, expected) in [(0, 200), (7, 200), (10, 200), (80, 1600), (900, 18_000)] {
            let found = greeting(Duration::from_secs(waited));
            assert_eq!(found, Duration::from_millis(expected), "after {waited} s");
        }
    }

    #[tokio::test]
    async fn who_takes_connections_and_says_nothing_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let began = Instant::now();
        assert!(!answers(port, GREETING).await);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}
