//! What keeps the processes of a machine in, beside the sandbox of system calls: a user and a control group of their own.
//!
//! A process enters its group and gives up its rights before QEMU is there, one after the other by programs that replace each other: a shell
//! that writes itself into the group, whatever starts QEMU (`setsid`, a supervisor), and `setpriv`. So there is no moment in which QEMU
//! has more than it is left with.
//!
//! The machine's directory belongs to whoever runs machines, and a machine's user may pass through it: what lies there is what Fairway relies on. QEMU
//! may write to files that were given to it, and to the directory [`names::LIVE`], where its sockets are. Whatever is found
//! there may be a lie, so nothing is opened there by a name alone ([`crate::socket`], [`read_made`]).

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, fchown, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::names;

/// Writes itself into a group and becomes what follows. `0` is whoever writes.
const ENTER: &str = r#"echo 0 > "$0" && exec "$@""#;

/// A user that only one machine has. Its group has the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The number.
    pub id: u32,
    /// Groups beside its own, for devices of the host.
    pub groups: Vec<u32>,
}

/// What keeps a machine's processes in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The user that they run as; nothing is that of this process.
    pub user: Option<User>,
    /// The directory of the control group that they are in.
    pub group: Option<PathBuf>,
}

impl Confinement {
    /// What comes before a command: `starter` with the rights of this process, and then with those that are left. With `bound` the command ends
    /// when what started it does.
    pub fn around(&self, starter: &[String], bound: bool) -> Vec<String> {
        let mut line = Vec::new();
        if let Some(group) = &self.group {
            let file = group.join("cgroup.procs").display().to_string();
            line.extend(["sh", "-c", ENTER, &file].map(str::to_owned));
        }
        line.extend(starter.iter().cloned());
        if self.user.is_none() && !bound {
            return line;
        }
        line.push("setpriv".to_owned());
        if bound {
            line.extend(["--pdeathsig", "KILL"].map(str::to_owned));
        }
        if let Some(user) = &self.user {
            let id = user.id.to_string();
            line.extend(["--reuid", &id, "--regid", &id].map(str::to_owned));
            let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
            match groups.is_empty() {
                true => line.push("--clear-groups".to_owned()),
                false => line.extend(["--groups".to_owned(), groups.join(",")]),
            }
            line.extend(["--inh-caps", "-all", "--no-new-privs"].map(str::to_owned));
        }
        line.push("--".to_owned());
        line
    }

    /// Makes a machine's directory, and in it the one that QEMU may write to.
    pub fn make(&self, directory: &Path) -> io::Result<()> {
        let live = directory.join(names::LIVE);
        DirBuilder::new().recursive(true).mode(0o700).create(&live)?;
        let Some(user) = &self.user else {
            std::fs::set_permissions(directory, Permissions::from_mode(0o700))?;
            return std::fs::set_permissions(&live, Permissions::from_mode(0o700));
        };
        chown(directory, None, Some(user.id))?;
        std::fs::set_permissions(directory, Permissions::from_mode(0o710))?;
        chown(&live, Some(user.id), Some(user.id))?;
        std::fs::set_permissions(&live, Permissions::from_mode(0o700))
    }

    /// Makes a directory for the machine's user within the one that QEMU may write to.
    pub fn make_within(&self, directory: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match &self.user {
            Some(user) => lchown(directory, Some(user.id), Some(user.id)),
            None => Ok(()),
        }
    }

    /// Gives a file to the machine's user, and to nobody else: QEMU may read and write it.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let file = opened(path)?;
        fchown(&file, Some(user.id), Some(user.id))?;
        file.set_permissions(Permissions::from_mode(0o600))
    }

    /// Lets every machine that can reach a file use it: several may write to a disk that they share. Which can reach it is up to the directories
    /// above, which machines can pass through and not read.
    pub fn share(&self, path: &Path, writable: bool) -> io::Result<()> {
        if self.user.is_none() {
            return Ok(());
        }
        let file = opened(path)?;
        let mode = if writable { 0o666 } else { 0o644 };
        fchown(&file, Some(0), Some(0))?;
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Lets the machine's user read a file that stays as it is: what several machines are built on.
    pub fn show(&self, path: &Path) -> io::Result<()> {
        if self.user.is_none() {
            return Ok(());
        }
        let file = opened(path)?;
        let mode = file.metadata()?.permissions().mode() & 0o7777;
        // It is written to by nobody but its owner.
        let wanted = (mode | 0o444) & !0o022;
        match wanted == mode {
            true => Ok(()),
            false => file.set_permissions(Permissions::from_mode(wanted)),
        }
    }

    /// Lets machines pass through a directory, without letting them read it.
    pub fn open_way(&self, directory: &Path) -> io::Result<()> {
        if self.user.is_none() {
            return Ok(());
        }
        let mode = std::fs::symlink_metadata(directory)?.permissions().mode() & 0o7777;
        let wanted = (mode | 0o011) & !0o066;
        match wanted == mode {
            true => Ok(()),
            false => std::fs::set_permissions(directory, Permissions::from_mode(wanted)),
        }
    }
}

/// A file that is one, and is where its name says.
fn opened(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Reads what QEMU made, at most so many bytes: a file in its directory that is none of ours by another name.
pub(crate) fn read_made(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut content = Vec::new();
    opened(path)?.take(most).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rights_are_given_up_on_the_way() {
        let user = |groups: &[u32]| {
            Some(User {
                id: 7,
                groups: groups.to_vec(),
            })
        };
        let group = || Some(PathBuf::from("/g"));
        for (user, group, bound, expected) in [
            (None, None, false, "setsid"),
            (None, None, true, "setsid setpriv --pdeathsig KILL --"),
            (
                user(&[]),
                None,
                false,
                "setsid setpriv --reuid 7 --regid 7 --clear-groups --inh-caps -all --no-new-privs --",
            ),
            (
                user(&[104, 5]),
                group(),
                true,
                "sh -c ENTER /g/cgroup.procs setsid setpriv --pdeathsig KILL --reuid 7 --regid 7 --groups 104,5 --inh-caps -all --no-new-privs --",
            ),
        ] {
            let confinement = Confinement { user, group };
            let line = confinement.around(&words("setsid"), bound).join(" ");
            assert_eq!(line.replace(ENTER, "ENTER"), expected);
        }
    }

    #[test]
    fn a_group_is_entered_before_anything_else_happens() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
        let confinement = Confinement {
            user: None,
            group: Some(folder.path().to_owned()),
        };
        let run = |confinement: &Confinement| {
            let line = confinement.around(&[], false);
            std::process::Command::new(&line[0])
                .args(&line[1..])
                .args(["echo", "a b"])
                .output()
                .unwrap()
        };
        let done = run(&confinement);
        assert_eq!(done.stdout, b"a b\n");
        let entered = std::fs::read_to_string(folder.path().join("cgroup.procs")).unwrap();
        assert_eq!(entered, "0\n");
        let nowhere = Confinement {
            group: Some(folder.path().join("none")),
            ..confinement
        };
        let failed = run(&nowhere);
        assert!(
            !failed.status.success() && failed.stdout.is_empty(),
            "one that cannot enter does not start: {failed:?}"
        );
    }

    /// As root, with the kernel's word for it.
    #[test]
    fn a_user_has_what_it_was_given() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can give a process another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let confinement = Confinement {
            user: Some(User {
                id: 1_900_000_123,
                groups: vec![1_900_000_124],
            }),
            group: None,
        };
        confinement.make(&home).unwrap();
        for (name, mode) in [("own", 0o600), ("base", 0o600), ("secret", 0o600), ("all", 0o600)] {
            let path = home.join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        confinement.give(&home.join("own")).unwrap();
        confinement.show(&home.join("base")).unwrap();
        confinement.share(&home.join("all"), true).unwrap();
        let line = confinement.around(&words("setsid -w"), true);
        let script = "id -u; id -G; cat own base; echo x >> own; echo x >> all; echo x > live/made; ls . ; cat secret; echo x >> base; echo x > new; rm -f own; grep -e NoNewPrivs -e CapEff /proc/self/status; exit 0";
        let done = std::process::Command::new(&line[0])
            .args(&line[1..])
            .args(["sh", "-c", script])
            .current_dir(&home)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(
            said, "1900000123\n1900000123 1900000124\nownbaseCapEff:\t0000000000000000\nNoNewPrivs:\t1\n",
            "{done:?}"
        );
        let refused = String::from_utf8_lossy(&done.stderr);
        assert_eq!(refused.matches("ermission denied").count(), 5, "{refused}");
        assert_eq!(std::fs::read_to_string(home.join("base")).unwrap(), "base");
        assert_eq!(
            std::fs::metadata(home.join("live/made")).unwrap().uid(),
            1_900_000_123
        );
        // What is not what it seems is not given away.
        symlink("/etc/passwd", home.join("link")).unwrap();
        assert!(confinement.give(&home.join("link")).is_err());
        assert!(confinement.give(&home.join("live")).is_err());
        assert!(read_made(&home.join("link"), 10).is_err());
        assert_eq!(read_made(&home.join("base"), 2).unwrap(), b"ba");
    }
}
