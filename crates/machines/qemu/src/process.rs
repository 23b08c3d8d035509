//! Processes, by handles that stay with them even when their numbers are given away again.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

/// Which process is meant: a number alone is given to another process some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// When it began, in ticks since the start of the host.
    pub(crate) start_time: u64,
    /// Which start of the host.
    pub(crate) boot_id: String,
}

impl Identity {
    /// The process that has the number now.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let start_time =
            start_time(&stat).ok_or_else(|| io::Error::other("the kernel's description of the process"))?;
        Ok(Self {
            pid,
            start_time,
            boot_id: boot_id.trim().to_owned(),
        })
    }

    /// Whether the process is still there.
    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

/// When a process began, in its `/proc/PID/stat`; `None` also for one that has ended and waits to be asked about it.
fn start_time(stat: &str) -> Option<u64> {
    // The name is in parentheses and may contain anything, parentheses included.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A handle of a process.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) identity: Identity,
    descriptor: AsyncFd<OwnedFd>,
}

impl Handle {
    /// A handle of the process that has the number now.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let descriptor = pidfd_open(number, PidfdFlags::NONBLOCK)?;
        // The handle first: it is of the process that is described then, or the description fails.
        let identity = Identity::of(pid)?;
        #[expect(
            deprecated,
            reason = "what is unsound with other types is not with an OwnedFd, and the replacement is unsafe to call"
        )]
        let descriptor = AsyncFd::new(descriptor)?;
        Ok(Self { identity, descriptor })
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        // Readable is only the end; an error would mean that the handle is none.
        let _ = self.descriptor.readable().await;
    }

    /// Ends the process without asking.
    pub(crate) fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(self.descriptor.get_ref(), Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_names_do_not_confuse() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_time(&format!("7 (qemu) {fields}")), Some(4242));
        assert_eq!(start_time(&format!("7 (a) Z 1) (b) {fields}")), Some(4242));
        assert_eq!(
            start_time(&format!("7 (qemu) {}", fields.replacen('S', "Z", 1))),
            None
        );
        assert_eq!(start_time("7 (qemu"), None);
        assert_eq!(start_time("7 (qemu) S 1 2"), None);
    }

    #[tokio::test]
    async fn a_handle_knows_its_process() {
        let mut child = tokio::process::Command::new("sleep").arg("100").spawn().unwrap();
        let handle = Handle::open(child.id().unwrap()).unwrap();
        assert!(handle.identity.is_alive());
        let other = Identity {
            start_time: handle.identity.start_time + 1,
            ..handle.identity.clone()
        };
        assert!(!other.is_alive());
        handle.kill().unwrap();
        handle.ended().await;
        child.wait().await.unwrap();
        assert!(!handle.identity.is_alive());
        handle.kill().unwrap();
    }
}
