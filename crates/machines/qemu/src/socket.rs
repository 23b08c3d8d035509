//! Sockets in a machine's directory, which may lie deeper than a socket's path can say.

use std::os::fd::AsRawFd as _;
use std::path::Path;

use tokio::net::UnixStream;

/// Connects to a socket in a directory.
pub(crate) async fn dial(directory: &Path, name: &str) -> std::io::Result<UnixStream> {
    let opened = std::fs::File::open(directory)?;
    let path = format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
    UnixStream::connect(path).await
}
