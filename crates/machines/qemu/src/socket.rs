//! Sockets in a machine's directory, which may lie deeper than a socket's path can say.
//!
//! QEMU makes them in a directory that it can write to, and a guest that has taken QEMU over can put something else there: a link to a socket of
//! the host, which would then hear Fairway, and whoever types at a console, with the rights of Fairway. So what is there is opened
//! first and looked at, and what was opened is connected to: a socket, of the user whose directory it is in.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use tokio::net::UnixStream;

/// Connects to a socket in a directory.
pub(crate) async fn dial(directory: &Path, name: &str) -> io::Result<UnixStream> {
    let path = directory.join(name);
    let within = path.parent().unwrap_or(directory);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(within, flags | OFlags::DIRECTORY, Mode::empty())?;
    let file = path.file_name().unwrap_or_default();
    let socket = rustix::fs::openat(&folder, file, flags, Mode::empty())?;
    let (found, owner) = (fstat(&socket)?, fstat(&folder)?.st_uid);
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket || found.st_uid != owner {
        let why = format!("{} is not a socket of its machine", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn only_what_is_a_socket_there_is_connected_to() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir_all(deep.join("live")).unwrap();
        let elsewhere = folder.path().join("host.sock");
        let _listener = tokio::net::UnixListener::bind(&elsewhere).unwrap();
        std::fs::hard_link(&elsewhere, deep.join("live/own.sock")).unwrap();
        assert!(dial(&deep, "live/own.sock").await.is_ok(), "however deep");
        symlink(&elsewhere, deep.join("live/link.sock")).unwrap();
        std::fs::write(deep.join("live/file.sock"), "").unwrap();
        for (name, kind) in [
            ("live/link.sock", io::ErrorKind::PermissionDenied),
            ("live/file.sock", io::ErrorKind::PermissionDenied),
            ("live/none.sock", io::ErrorKind::NotFound),
        ] {
            let found = dial(&deep, name).await.unwrap_err();
            assert_eq!(found.kind(), kind, "{name}: {found}");
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(deep.join("live"), Some(1_900_000_123), None).unwrap();
            assert!(dial(&deep, "live/own.sock").await.is_err(), "somebody else's");
        }
    }
}
