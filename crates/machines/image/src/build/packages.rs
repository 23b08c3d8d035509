//! Packages of the distribution: which, from where apt finds them, and what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use fairway_machines_disk::{Content, Node, Tree};

use crate::{ImageError, cache, command, failed};

/// How long apt may think.
const LOOK_UP: Duration = Duration::from_secs(120);
/// Texts for people: nobody reads them in the guest.
const LEFT_OUT: [&str; 5] = [
    "usr/share/doc/",
    "usr/share/man/",
    "usr/share/locale/",
    "usr/share/info/",
    "usr/share/bug/",
];
/// What of the packages that a package needs is fetched, too: libraries, and the kernel behind the name for the newest.
const NEEDED: [&str; 3] = ["lib", "zlib", "linux-image-"];
/// The largest file in a package that is read.
const MAX_FILE: u64 = 256 << 20;
/// More packages would not be tiny.
const MAX_PACKAGES: usize = 200;
/// What a system has in any case: what mmdebstrap calls `minbase`.
const BASE: [&str; 3] = ["?essential", "?priority(required)", "apt"];

/// A package as apt would install it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sha256: String,
    depends: Vec<String>,
}

/// These packages, and the kernels and libraries that they need.
pub(super) fn resolve(roots: &[&str]) -> Result<Vec<Package>, ImageError> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let mut wanted: Vec<String> = roots.iter().map(|name| (*name).to_owned()).collect();
    while !wanted.is_empty() {
        asked.extend(wanted.iter().cloned());
        if asked.len() > MAX_PACKAGES {
            return Err(ImageError::Build(
                "there are too many packages to fetch".to_owned(),
            ));
        }
        let mut show = Command::new("apt-cache");
        show.args(["show", "--no-all-versions", "--"]).args(&wanted);
        let output = command::run(&mut show, LOOK_UP)?;
        for package in parse(&String::from_utf8_lossy(&output)) {
            found.insert(package.name.clone(), package);
        }
        if let Some(missing) = wanted.iter().find(|name| !found.contains_key(*name)) {
            return Err(ImageError::Build(format!(
                "apt does not know the package {missing}; try: apt-get update"
            )));
        }
        wanted = found
            .values()
            .flat_map(|package| package.depends.iter())
            .filter(|name| NEEDED.iter().any(|start| name.starts_with(start)) && !asked.contains(*name))
            .cloned()
            .collect();
        wanted.sort();
        wanted.dedup();
    }
    Ok(found.into_values().collect())
}

/// Everything that a new system with these packages would consist of, as apt of this host would install it. Which packages that are changes
/// with every update of any of them.
pub(super) fn whole(roots: &[&str]) -> Result<Vec<Package>, ImageError> {
    let mut simulate = Command::new("apt-get");
    simulate
        // A system on which nothing is installed yet.
        .args(["-q", "--simulate", "-o", "Dir::State::status=/dev/null"])
        .args(["-o", "APT::Install-Recommends=false", "install", "--"])
        .args(BASE)
        .args(roots);
    let output = command::run(&mut simulate, LOOK_UP)?;
    let names = installed(&String::from_utf8_lossy(&output));
    if names.is_empty() {
        return Err(ImageError::Build(
            "apt would install nothing at all; try: apt-get update".to_owned(),
        ));
    }
    let mut show = Command::new("apt-cache");
    show.args(["show", "--"])
        .args(names.iter().map(|(name, version)| format!("{name}={version}")));
    let output = command::run(&mut show, LOOK_UP)?;
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    for package in parse(&String::from_utf8_lossy(&output)) {
        if names.get(&package.name) == Some(&package.version) {
            found.insert(package.name.clone(), package);
        }
    }
    match names.keys().find(|name| !found.contains_key(*name)) {
        Some(missing) => Err(ImageError::Build(format!(
            "apt would install the package {missing}, and does not know it; try: apt-get update"
        ))),
        None => Ok(found.into_values().collect()),
    }
}

/// Names and versions in what a simulated installation prints.
fn installed(text: &str) -> BTreeMap<String, String> {
    let package = |line: &str| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
        let version = rest.split([' ', ')']).next()?;
        // Such as `libc6:amd64`, where there are several architectures.
        let name = name.split([':', ' ']).next()?;
        Some((name.to_owned(), version.to_owned()))
    };
    text.lines().filter_map(package).collect()
}

/// Packages in what dpkg of a system keeps of itself.
pub(super) fn in_status(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split("\n\n")
        .filter_map(|paragraph| {
            let field = |name: &str| {
                paragraph
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            field("Status").filter(|it| it.ends_with(" installed"))?;
            Some(format!("{}={}", field("Package")?, field("Version")?))
        })
        .collect();
    found.sort();
    found
}

/// Packages in what `apt-cache show` prints.
fn parse(text: &str) -> Vec<Package> {
    text.split("\n\n")
        .filter_map(|paragraph| {
            let field = |name: &str| {
                paragraph
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            };
            let depends = ["Depends", "Pre-Depends"]
                .into_iter()
                .filter_map(field)
                .flat_map(|list| list.split(','))
                .filter_map(|entry| {
                    // The first of several that would do, without its version and architecture.
                    let name = entry.split('|').next()?.trim();
                    let end = name.find([' ', '(', ':']).unwrap_or(name.len());
                    Some(name[..end].to_owned())
                })
                .collect();
            Some(Package {
                name: field("Package")?.to_owned(),
                version: field("Version")?.to_owned(),
                sha256: field("SHA256")?.to_owned(),
                depends,
            })
        })
        .collect()
}

/// Brings the packages into a folder, each under its digest. Those that are there already are not fetched.
pub(super) fn fetch(packages: &[Package], folder: &Path, timeout: Duration) -> Result<(), ImageError> {
    std::fs::create_dir_all(folder).map_err(failed("making", folder))?;
    let missing: Vec<&Package> = packages
        .iter()
        .filter(|package| !folder.join(&package.sha256).exists())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let work = tempfile::tempdir_in(folder).map_err(failed("making a directory in", folder))?;
    let mut download = Command::new("apt-get");
    download
        .current_dir(work.path())
        // Without root apt would complain that it cannot change its user; with root, that its user cannot write here.
        .args(["-q", "-o", "APT::Sandbox::User=root", "download", "--"])
        .args(
            missing
                .iter()
                .map(|package| format!("{}={}", package.name, package.version)),
        );
    command::run(&mut download, timeout)?;
    for entry in std::fs::read_dir(work.path()).map_err(failed("listing", work.path()))? {
        let path = entry.map_err(failed("listing", work.path()))?.path();
        let file = std::fs::File::open(&path).map_err(failed("reading", &path))?;
        let digest = cache::digest(&file).map_err(failed("reading", &path))?;
        if packages.iter().any(|package| package.sha256 == digest) {
            let to = folder.join(&digest);
            std::fs::rename(&path, &to).map_err(failed("naming", &to))?;
        }
    }
    let lacking = missing
        .iter()
        .find(|package| !folder.join(&package.sha256).exists());
    match lacking {
        None => {
            forget_others(packages, folder);
            Ok(())
        }
        Some(package) => Err(ImageError::Build(format!(
            "apt-get gave another file than the list of packages says for {}; try: apt-get update",
            package.name
        ))),
    }
}

/// Removes packages of earlier versions.
fn forget_others(packages: &[Package], folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !packages.iter().any(|package| *package.sha256 == *name) && entry.path().is_file() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Puts what is in a package into a tree.
pub(super) fn unpack(package: &Package, folder: &Path, tree: &mut Tree) -> Result<(), ImageError> {
    let mut list = Command::new("dpkg-deb");
    list.arg("--fsys-tarfile").arg(folder.join(&package.sha256));
    let mut child = list
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map_err(failed("running", Path::new("dpkg-deb")))?;
    let outcome = match child.stdout.take() {
        Some(output) => read(
            tar::Archive::new(std::io::BufReader::new(output)),
            &LEFT_OUT,
            tree,
        ),
        None => Ok(()),
    };
    if outcome.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed("running", Path::new("dpkg-deb")))?;
    let broken = |why: String| ImageError::Build(format!("unpacking {}: {why}", package.name));
    outcome.map_err(|error| broken(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(broken(format!("dpkg-deb ended with {status}"))),
    }
}

/// Puts what is in an archive into a tree. Devices are left out: the kernel of a guest makes them.
pub(super) fn read(
    mut archive: tar::Archive<impl std::io::Read>,
    left_out: &[&str],
    tree: &mut Tree,
) -> std::io::Result<()> {
    use std::io::Read as _;
    let owner = |number: u64| u32::try_from(number).unwrap_or(0);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry
            .path()?
            .to_string_lossy()
            .trim_start_matches("./")
            .to_owned();
        if path.is_empty()
            || path.starts_with("dev/")
            || left_out.iter().any(|folder| path.starts_with(folder))
        {
            continue;
        }
        let kind = entry.header().entry_type();
        let mode = (entry.header().mode()? & 0o7777) as u16;
        let (uid, gid) = (owner(entry.header().uid()?), owner(entry.header().gid()?));
        let node = |content| Node {
            mode,
            uid,
            gid,
            content,
        };
        let link = entry.link_name()?.map(|link| link.to_string_lossy().into_owned());
        if kind.is_dir() {
            tree.put(&path, node(Content::Directory));
        } else if kind.is_symlink() {
            tree.put(&path, node(Content::Symlink(link.unwrap_or_default())));
        } else if kind.is_hard_link() {
            let target = link.unwrap_or_default();
            if let Some(same) = tree.get(target.trim_start_matches("./")).cloned() {
                tree.put(&path, same);
            }
        } else if kind.is_file() {
            if entry.size() > MAX_FILE {
                return Err(std::io::Error::other(format!("{path} is too large for an image")));
            }
            let mut bytes = Vec::new();
            entry.by_ref().take(MAX_FILE).read_to_end(&mut bytes)?;
            tree.put(&path, node(Content::File(Bytes::from(bytes))));
        }
    }
    // The rest of the pipe is padding, but the program wants to be rid of it.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install_is_read() {
        let text = "Reading package lists...\nThe following NEW packages will be installed:\n  a b\n\
                    Inst a (1:2-3 Debian:12.15/oldstable [amd64])\n\
                    Inst b:amd64 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64]) []\n\
                    Inst c [0.9] (1.0 Debian:12.15/oldstable [all])\nConf a (1:2-3 Debian)\n";
        let found: Vec<(String, String)> = installed(text).into_iter().collect();
        let expected = [("a", "1:2-3"), ("b", "2.36-9+deb12u14"), ("c", "1.0")];
        assert_eq!(
            found,
            expected.map(|(name, version)| (name.to_owned(), version.to_owned()))
        );
    }

    #[test]
    fn a_system_is_more_than_what_is_asked_for() {
        let found = match whole(&["systemd-sysv"]) {
            Ok(found) => found,
            Err(ImageError::Program { program, why }) if program.starts_with("apt") => {
                return fairway_machines_required::skipped(format_args!("the packages cannot be had: {why}"));
            }
            Err(error) => panic!("{error}"),
        };
        for name in ["systemd-sysv", "systemd", "libc6", "dpkg", "apt", "login"] {
            assert!(found.iter().any(|it| it.name == name), "{name}: {found:?}");
        }
        assert!(
            found
                .iter()
                .all(|it| it.sha256.len() == 64 && !it.version.is_empty())
        );
    }

    #[test]
    fn what_is_installed_is_read() {
        let text = "Package: b\nStatus: install ok installed\nVersion: 2\n\nPackage: a\nStatus: install ok installed\n\
                    Version: 1:2-3\nDescription: text\n Version: not this\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n";
        assert_eq!(in_status(text), ["a=1:2-3", "b=2"]);
    }

    #[test]
    fn what_apt_shows_is_read() {
        let text = "Package: a\nVersion: 1:2-3\nDepends: libc6 (>= 2.34), libx:any | liby, z\nPre-Depends: libp\n\
                    Description: text\n Depends: not this\nSHA256: abc\n\nPackage: b\nVersion: 1\nSHA256: def\n\nPackage: c\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].depends, ["libc6", "libx", "z", "libp"]);
        assert_eq!(
            (found[0].version.as_str(), found[1].name.as_str()),
            ("1:2-3", "b")
        );
    }
}
