//! What a disk image looks like from outside.

use serde::{Deserialize, Serialize};

/// Formats of images that machines use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The disk as it is.
    Raw,
    /// QEMU's own.
    Qcow2,
}

impl Format {
    /// QEMU's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// What a file begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// A disk in a format that is used.
    Disk(Format),
    /// Packed.
    Gzip,
    /// Packed.
    Xz,
    /// Packed.
    Zstd,
    /// Something that a guest could not boot from, although it could be taken for a raw disk; what to do.
    Foreign(&'static str),
}

/// How many bytes [`looks`] wants to see.
pub(crate) const HEAD: usize = 512;

/// Judges the beginning of a file. What is nothing else is a raw disk.
pub(crate) fn looks(head: &[u8]) -> Looks {
    let convert = "it is an image of another hypervisor; convert it first: qemu-img convert -O qcow2 IN OUT";
    match head {
        [b'Q', b'F', b'I', 0xfb, ..] => Looks::Disk(Format::Qcow2),
        [0x1f, 0x8b, ..] => Looks::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Looks::Xz,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Looks::Zstd,
        [b'K', b'D', b'M', b'V', ..] => Looks::Foreign(convert),
        head if head.starts_with(b"# Disk DescriptorFile") => Looks::Foreign(convert),
        head if head.starts_with(b"conectix") || head.starts_with(b"vhdxfile") => Looks::Foreign(convert),
        head if head.starts_with(b"<<< ") => Looks::Foreign(convert),
        head if head.starts_with(b"LUKS\xba\xbe") => Looks::Foreign("it is encrypted"),
        head if head.starts_with(b"BZh") => Looks::Foreign("it is packed by bzip2; use xz, gzip or zstd"),
        head if head.starts_with(b"PK\x03\x04") => Looks::Foreign("it is a zip archive; unpack it first"),
        head if head.get(257..262) == Some(b"ustar") => {
            Looks::Foreign("it is a tar archive; unpack it first, or import it as a container image")
        }
        head if is_page(head) => Looks::Foreign("it is a web page, not a disk; look at the address"),
        _ => Looks::Disk(Format::Raw),
    }
}

/// Text with a tag first. A disk may begin with the same letter, but is no text.
fn is_page(head: &[u8]) -> bool {
    let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    head.trim_ascii_start().starts_with(b"<") && head.iter().all(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_beginning() {
        for (head, expected) in [
            (&b"QFI\xfb\0\0\0\x03"[..], Some(Looks::Disk(Format::Qcow2))),
            (b"\x1f\x8b\x08", Some(Looks::Gzip)),
            (b"\xfd7zXZ\0", Some(Looks::Xz)),
            (b"\x28\xb5\x2f\xfd", Some(Looks::Zstd)),
            (b"\xeb\x63\x90", Some(Looks::Disk(Format::Raw))),
            (b"", Some(Looks::Disk(Format::Raw))),
            (b"KDMV", None),
            (b"\n<!DOCTYPE html>", None),
            (b"PK\x03\x04", None),
            (b"<\0\x01", Some(Looks::Disk(Format::Raw))),
        ] {
            let found = looks(head);
            match expected {
                Some(expected) => assert_eq!(found, expected, "{head:?}"),
                None => assert!(matches!(found, Looks::Foreign(_)), "{head:?}"),
            }
        }
    }
}
