//! Fencing: a small process over each QEMU that ends it when this node has not been heard of for too long.
//!
//! Whoever sees no sign of a node waits and then starts its machines elsewhere. That is safe only if they have ended here by then, also when
//! the node is alive and merely cut off, or its Fairway is dead. So the node writes down when its Lease was last renewed, by the
//! host's own clock that nothing sets and no sleep stops, and a supervisor per QEMU reads it: once the time has passed, QEMU
//! is ended. The promise is written on the Node (`fairway.dev/fence-seconds`); a node without supervisors makes none.
//!
//! The supervisor knows nothing else: no API, no network. It is started as `PROGRAM supervise --lease FILE --seconds N -- COMMAND`, and
//! should it be killed itself, QEMU goes with it.

mod promise;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use promise::promise;

/// Where it is written down when the Lease was last renewed.
const FILE: &str = "alive";
/// How often the supervisor looks.
const LOOK: Duration = Duration::from_secs(1);
/// How long a start waits for a sign of the node, whose last one is too old.
const SIGN: Duration = Duration::from_secs(5);
/// With which code a supervisor ends that has ended its process.
const FENCED: u8 = 75;

/// Machines of this node end when it is not heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fencing {
    /// What is started over each QEMU; its arguments follow. Usually this very program and `supervise`.
    pub supervisor: Vec<String>,
    /// After so long without a renewed Lease.
    pub after: Duration,
}

impl Fencing {
    /// What starts QEMU; that ends with it, however it comes to its end (`Launch::bound`). It keeps the rights of the node, so that a QEMU that
    /// was taken over cannot end it.
    pub(crate) fn starter(&self, directory: &Path) -> Vec<String> {
        let mut line = vec!["setsid".to_owned()];
        line.extend(self.supervisor.iter().cloned());
        let seconds = self.after.as_secs().to_string();
        let lease = lease(directory).display().to_string();
        line.extend(["--lease", &lease, "--seconds", &seconds, "--"].map(str::to_owned));
        line
    }
}

/// The file of a node.
fn lease(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Writes down that the Lease was renewed. The moment is that at which it was asked for: whoever sees the Lease change counts from then,
/// however late the answer comes.
pub(crate) fn renewed(directory: &Path, asked: Duration) -> io::Result<()> {
    let draft = directory.join(format!(".{FILE}"));
    std::fs::create_dir_all(directory)?;
    std::fs::write(&draft, asked.as_millis().to_string())?;
    std::fs::rename(&draft, lease(directory))
}

/// The time since the host started, sleep included.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// When the Lease was last renewed; nothing if nobody wrote it down since the host started.
fn read(lease: &Path, now: Duration) -> Option<Duration> {
    let text = std::fs::read_to_string(lease).ok()?;
    let moment = Duration::from_millis(text.trim().parse().ok()?);
    // One that lies ahead is of an earlier start of the host.
    (moment <= now).then_some(moment)
}

/// Whether the time has passed. A start is no sign of the node: others do not see it.
fn is_over(now: Duration, renewed: Option<Duration>, started: Duration, patience: Duration) -> bool {
    now.saturating_sub(renewed.unwrap_or(started)) > patience
}

/// Whether a process may be started. A node that has just come back may not have renewed its Lease yet.
fn may_start(order: &Order) -> bool {
    let asked = now();
    loop {
        let now = now();
        if !is_over(now, read(&order.lease, now), now, order.patience) {
            return true;
        }
        if now.saturating_sub(asked) > SIGN {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What the supervisor is told.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    lease: PathBuf,
    patience: Duration,
    command: Vec<String>,
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Order> {
    let mut arguments = arguments.into_iter();
    let (mut lease, mut seconds) = (None, None);
    loop {
        match arguments.next()?.as_str() {
            "--lease" => lease = Some(PathBuf::from(arguments.next()?)),
            "--seconds" => seconds = arguments.next()?.parse().ok(),
            "--" => break,
            _ => return None,
        }
    }
    let command: Vec<String> = arguments.collect();
    Some(Order {
        lease: lease?,
        patience: Duration::from_secs(seconds?),
        command: (!command.is_empty()).then_some(command)?,
    })
}

/// Runs a process under supervision: everything after `supervise` on the command line. Ends as it ends.
#[expect(clippy::print_stderr, reason = "it goes to the log of the machine")]
pub fn supervise(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let Some(order) = parse(arguments) else {
        eprintln!("usage: fairway supervise --lease FILE --seconds N -- COMMAND...");
        return ExitCode::from(2);
    };
    match watch_over(&order) {
        Ok(Some(status)) => ExitCode::from(code(status)),
        Ok(None) => {
            eprintln!(
                "fairway supervise: the node was not heard of for {} s: the machine was ended, as it may be started elsewhere",
                order.patience.as_secs()
            );
            ExitCode::from(FENCED)
        }
        Err(error) => {
            eprintln!("fairway supervise: {} cannot be run: {error}", order.command[0]);
            ExitCode::from(126)
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it));
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1)
}

/// Until the process ends, or its time has passed: then nothing.
fn watch_over(order: &Order) -> io::Result<Option<ExitStatus>> {
    if !may_start(order) {
        return Ok(None);
    }
    let started = now();
    let mut child = Command::new(&order.command[0])
        .args(&order.command[1..])
        .spawn()?;
    let outcome = guard(order, started, &mut child);
    if !matches!(outcome, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    outcome
}

fn guard(order: &Order, started: Duration, child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pidfd_open(pid.ok_or(io::ErrorKind::InvalidInput)?, PidfdFlags::empty())?;
    let wait = Timespec {
        tv_sec: i64::try_from(LOOK.as_secs()).unwrap_or(1),
        tv_nsec: 0,
    };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = now();
        if is_over(now, read(&order.lease, now), started, order.patience) {
            return Ok(None);
        }
        // Ready is the end of the process.
        let mut handles = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut handles, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_time_counts_from_the_last_sign() {
        let at = Duration::from_secs;
        for (now, renewed, started, expected) in [
            (at(100), Some(at(90)), at(10), false),
            (at(100), Some(at(60)), at(10), false),
            (at(101), Some(at(60)), at(10), true),
            (at(101), Some(at(60)), at(95), true),
            (at(100), None, at(90), false),
            (at(131), None, at(90), true),
        ] {
            assert_eq!(
                is_over(now, renewed, started, at(40)),
                expected,
                "{now:?} {renewed:?}"
            );
        }
    }

    #[test]
    fn what_it_is_told() {
        let order = parse(words("--lease /d/alive --seconds 40 -- qemu -m 1")).unwrap();
        assert_eq!(order.patience, Duration::from_secs(40));
        assert_eq!(order.command, ["qemu", "-m", "1"]);
        for wrong in [
            "--lease /d --seconds 40 --",
            "--lease /d -- qemu",
            "--seconds x --lease /d -- qemu",
            "qemu",
        ] {
            assert_eq!(parse(words(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_process_ends_when_nobody_renews() {
        let folder = tempfile::tempdir().unwrap();
        let order = |command: &str, seconds: u64| Order {
            lease: lease(folder.path()),
            patience: Duration::from_secs(seconds),
            command: ["sh", "-c", command].map(str::to_owned).to_vec(),
        };
        let ended = watch_over(&order("exit 7", 60)).unwrap().unwrap();
        assert_eq!(code(ended), 7);
        assert!(
            watch_over(&order("kill -9 $$", 60))
                .unwrap()
                .is_some_and(|it| code(it) == 137)
        );

        // Renewed for a while, and then no more.
        let directory = folder.path().to_owned();
        let renewing = std::thread::spawn(move || {
            for _ in 0..6 {
                renewed(&directory, now()).unwrap();
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let begun = std::time::Instant::now();
        let order = order("exec sleep 600", 1);
        assert!(watch_over(&order).unwrap().is_none(), "it was ended");
        assert!(
            begun.elapsed() >= Duration::from_secs(3),
            "not before the time: {:?}",
            begun.elapsed()
        );
        renewing.join().unwrap();
        // Nothing is started on a node that has been silent for too long.
        let late = Order {
            command: ["touch", &folder.path().join("started").display().to_string()]
                .map(str::to_owned)
                .to_vec(),
            ..order
        };
        assert!(watch_over(&late).unwrap().is_none());
        assert!(!folder.path().join("started").exists());
        // A moment of an earlier start of the host says nothing.
        std::fs::write(lease(folder.path()), "99999999999999").unwrap();
        assert_eq!(read(&lease(folder.path()), now()), None);
    }

    #[test]
    fn the_command_line_keeps_the_promise() {
        let fencing = Fencing {
            supervisor: words("/usr/bin/fairway supervise"),
            after: Duration::from_secs(40),
        };
        assert_eq!(
            fencing.starter(Path::new("/d")).join(" "),
            "setsid /usr/bin/fairway supervise --lease /d/alive --seconds 40 --"
        );
    }
}
