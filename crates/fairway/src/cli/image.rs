//! `fairway image` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Data, Output};

/// Options of `image`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Image {
    /// What to do.
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// The commands of `image`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ImageCommand {
    /// Build an image from packages of Debian. It is built once for every version of the packages.
    Build(ImageBuild),
    /// List the images of this host.
    #[command(visible_alias = "ls")]
    List(ImageList),
    /// Import a disk image: a file or URL, raw or qcow2, plain or packed by xz, gzip or zstd; or a container disk on this host.
    Import(ImageImport),
    /// Forget images. Machines that were made from them keep their disks.
    #[command(visible_alias = "remove")]
    Rm(ImageRemove),
}

/// Options of `image build`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageBuild {
    /// Which image.
    #[arg(value_enum)]
    pub what: Guest,
    /// Build it even if it is there from the same packages.
    #[arg(long)]
    pub rebuild: bool,
    /// State.
    #[command(flatten)]
    pub data: Data,
}

/// Images that can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guest {
    /// A kernel, busybox, SSH and the guest agent: boots in seconds, for trying things out.
    Tiny,
    /// The whole system with systemd, cloud-init and OpenSSH. It takes mmdebstrap and minutes, and root or a user namespace.
    Debian,
}

/// Options of `image list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageList {
    /// State.
    #[command(flatten)]
    pub data: Data,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `image import`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageImport {
    /// A file, a directory in OCI's image layout, or an http(s) URL.
    pub source: String,
    /// The image's name [default: the file's name without its endings].
    #[arg(long)]
    pub name: Option<String>,
    /// What the file must be, as it is transferred: sha256:HEX, sha512:HEX or sha1:HEX.
    #[arg(long, value_name = "KIND:HEX")]
    pub checksum: Option<String>,
    /// The largest disk, in bytes [default: 1 TiB].
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Path of the disk in a container image [default: the only file under /disk].
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// State.
    #[command(flatten)]
    pub data: Data,
}

/// Options of `image rm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImageRemove {
    /// Which images.
    #[arg(required = true)]
    pub names: Vec<String>,
    /// State.
    #[command(flatten)]
    pub data: Data,
}

impl ImageImport {
    /// The file that is imported, if it is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let is_url = self.source.starts_with("http://") || self.source.starts_with("https://");
        (!is_url).then(|| PathBuf::from(&self.source))
    }
}
