//! The network namespace of a node's cards.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sha2::{Digest as _, Sha256};

use crate::device;
use crate::rules::{self, Carried};

/// Where `ip` keeps namespaces that have names.
const NAMED: &str = "/run/netns";
/// How much of a complaint is passed on.
const COMPLAINT: usize = 400;

/// Why there are no devices for cards, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("this process is not root: run it as root, or let the switch carry everything")]
    Root,
    #[error("{0} is not installed (on Debian: apt-get install iproute2 nftables)")]
    Program(&'static str),
    #[error("{path} cannot be opened: {why}", path = device::TUN)]
    Device { why: String },
    #[error("{what} failed: {why}")]
    Refused { what: String, why: String },
}

/// A network namespace that has a name, so that it outlives whoever made it, as machines do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    name: String,
}

impl Space {
    fn of(directory: &Path) -> Self {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        Self {
            name: format!("fairway-{}", short(&directory)),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_test(directory: &Path) -> Self {
        Self::of(directory)
    }

    /// That of the node whose machines live in a directory; made, and tried, if it is not there.
    pub fn open(directory: &Path) -> Result<Self, Missing> {
        if !rustix::process::geteuid().is_root() {
            return Err(Missing::Root);
        }
        for program in ["ip", "nft"] {
            let found = Command::new(program)
                .arg("-V")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if found.is_err() {
                return Err(Missing::Program(program));
            }
        }
        open(device::TUN, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
            Missing::Device {
                why: error.to_string(),
            }
        })?;
        let space = Self::of(directory);
        if space.within(|_| Ok(())).is_err() {
            // Perhaps a name that nothing stands behind any more.
            let _ = run("ip", &["netns", "del", &space.name], "");
            run("ip", &["netns", "add", &space.name], "")?;
        }
        match space.within(Inside::prepare) {
            Ok(()) => Ok(space),
            Err(missing) => {
                space.remove_unless_used();
                Err(missing)
            }
        }
    }

    /// That of a node whose machines were given devices before, and run on. One that nobody uses is removed.
    pub fn find(directory: &Path) -> Option<Self> {
        let space = Self::of(directory);
        if !space.path().exists() {
            return None;
        }
        space.remove_unless_used();
        space.path().exists().then_some(space)
    }

    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        Path::new(NAMED).join(&self.name)
    }

    /// Removes it, unless a machine has a device in it.
    pub fn remove_unless_used(&self) {
        let is_unused = self.within(|inside| Ok(!inside.has_devices()));
        if matches!(is_unused, Ok(true) | Err(_)) {
            // Processes that are in it keep it, without a name.
            let _ = run("ip", &["netns", "del", &self.name], "");
        }
    }

    /// Moves this thread into the namespace, for good. Programs that it starts are there, too.
    pub fn enter(&self) -> Result<Inside, Missing> {
        enter(&self.path()).map_err(|error| refused("entering the network namespace", &error))?;
        Ok(Inside(()))
    }

    /// Does something in the namespace, in a thread that ends with it.
    fn within<T: Send>(&self, act: impl FnOnce(&Inside) -> Result<T, Missing> + Send) -> Result<T, Missing> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| act(&self.enter()?));
            thread.join().unwrap_or_else(|_| {
                Err(Missing::Refused {
                    what: "a thread in the network namespace".into(),
                    why: "it panicked".into(),
                })
            })
        })
    }
}

/// Moves this thread into a namespace that has a file.
pub(crate) fn enter(path: &Path) -> io::Result<()> {
    let space = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(move_into_link_name_space(
        space.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// The thread that has this is in the namespace.
#[derive(Debug)]
pub struct Inside(());

impl Inside {
    /// Rules without cards, and a kernel that says nothing by itself on its devices.
    fn prepare(&self) -> Result<(), Missing> {
        match std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
            // A kernel without IPv6 says nothing either.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused("switching IPv6 off in the network namespace", &error));
            }
            _ => {}
        }
        nft(&rules::base())
    }

    /// The number of a device that is there.
    pub fn index(&self, name: &str) -> Option<u32> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
        name_to_index(&any, name).ok()
    }

    /// Whether a machine has a device here; the switch's own count for nothing.
    fn has_devices(&self) -> bool {
        let listed = Command::new("ip")
            .args(["-o", "link", "show", "type", "tun"])
            .output();
        listed.is_ok_and(|it| has_guests(&String::from_utf8_lossy(&it.stdout)))
    }

    /// Makes a device of its own, which is gone when the file is closed.
    pub fn make(&self, device: &str) -> io::Result<OwnedFd> {
        device::make(device)
    }

    /// Makes the switch's device for a card whose own is there, and joins the two. What an earlier switch left is replaced.
    pub fn join(&self, guest: &str, switch: &str) -> Result<OwnedFd, Missing> {
        self.part(guest, switch);
        let file =
            device::make(switch).map_err(|error| refused(&format!("making the device {switch}"), &error))?;
        for device in [switch, guest] {
            run("ip", &["link", "set", "dev", device, "up"], "")?;
        }
        nft(&rules::join(guest, switch))?;
        Ok(file)
    }

    /// Takes the rules of a card away, if there are any.
    pub fn part(&self, guest: &str, switch: &str) {
        for device in [guest, switch] {
            let _ = nft(&rules::part(device));
        }
    }

    /// Has the kernel carry connections for a while.
    pub fn carry(&self, all: &[Carried]) -> Result<(), Missing> {
        nft(&rules::carry(all))
    }

    /// Has the kernel carry nothing by itself any more. If that cannot be, all rules go, and cards carry nothing until they are joined again.
    pub fn forget(&self) -> Result<(), Missing> {
        nft(&rules::forget()).or_else(|missing| {
            nft(&rules::end())?;
            nft(&rules::base())?;
            Err(missing)
        })
    }
}

/// The name of a card's device: of the TAP that QEMU has. The card is known by the file that its socket would be.
pub fn guest_device(card: &Path) -> String {
    format!("g{}", short(card))
}

/// The name of the switch's device for a card.
pub fn switch_device(card: &Path) -> String {
    format!("s{}", short(card))
}

/// Whether a list of devices, a line each with number and name, has one of a card.
fn has_guests(listed: &str) -> bool {
    let mut names = listed
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(1));
    names.any(|name| name.starts_with('g'))
}

fn short(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn refused(what: &str, why: &dyn std::fmt::Display) -> Missing {
    Missing::Refused {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

fn nft(text: &str) -> Result<(), Missing> {
    match text.is_empty() {
        true => Ok(()),
        false => run("nft", &["-f", "-"], text),
    }
}

/// Runs a program in the namespace of this thread.
fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<(), Missing> {
    let what = || format!("{program} {}", arguments.join(" "));
    let done = || -> io::Result<std::process::Output> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    };
    match done() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: String = said.trim().chars().take(COMPLAINT).collect();
            Err(refused(&what(), &said))
        }
        Err(error) => Err(refused(&what(), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let (one, other) = (Path::new("/run/a/net.sock"), Path::new("/run/b/net.sock"));
        assert_ne!(guest_device(one), guest_device(other));
        assert_ne!(guest_device(one), switch_device(one));
        assert_eq!(guest_device(one), guest_device(one));
        assert!(guest_device(one).len() < 16);
    }

    #[test]
    fn the_switchs_own_devices_keep_nothing() {
        for (listed, expected) in [
            ("", false),
            ("2: s0123456789ab: <BROADCAST> mtu 1500\n", false),
            (
                "2: s01: <BROADCAST>\n3: g0123456789ab: <BROADCAST> mtu 1500\n",
                true,
            ),
        ] {
            assert_eq!(has_guests(listed), expected, "{listed}");
        }
    }
}
