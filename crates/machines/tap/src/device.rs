//! A TAP: a network card of the kernel whose wire is a file.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{Opcode, Updater, ioctl};

/// Where the kernel makes them.
pub(crate) const TUN: &str = "/dev/net/tun";
/// The longest name of a device, with the zero behind it.
const NAME: usize = 16;
/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
/// Frames, not packets.
const IFF_TAP: u16 = 0x0002;
/// Nothing before them.
const IFF_NO_PI: u16 = 0x1000;
/// One of this name must not be there already.
const IFF_TUN_EXCL: u16 = 0x8000;

/// `struct ifreq`: a name, and a union of which flags are what is wanted here.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: u16,
    rest: [u8; 22],
}

/// The size that the kernel copies, on machines with 64 bits.
const _: () = assert!(size_of::<Request>() == 40);

/// Makes a TAP in the network namespace of this thread. It is gone when the last copy of the file is closed.
pub(crate) fn make(name: &str) -> io::Result<OwnedFd> {
    let mut request = Request {
        name: [0; NAME],
        flags: IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL,
        rest: [0; 22],
    };
    // A zero must be left at the end.
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= NAME {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..bytes.len()].copy_from_slice(bytes);
    let file = open(
        TUN,
        OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which `Request` is: its layout is C's, its size is checked above, it is
    // initialised as a whole and lives until the call returns. The kernel keeps no pointer to it.
    unsafe { ioctl(&file, Updater::<TUNSETIFF, Request>::new(&mut request)) }?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_refused() {
        for name in ["", "a-name-of-16-byt", "a-name-that-is-far-too-long"] {
            assert_eq!(
                make(name).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{name}"
            );
        }
    }
}
