//! What is at the other end of a port: a socket, or a device of the kernel.
//!
//! A socket is a stream of frames with their lengths before them; a device takes and gives one frame at a time, without. Everything else in the switch
//! knows the former only.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

use crate::state::PREFIX;

pub(crate) enum Wire {
    Socket(UnixStream),
    Device(Device),
}

impl Wire {
    /// Writes pieces that consist of whole frames, and says how many bytes were taken. A device takes all or loses some, as a card does whose receiver is
    /// too slow.
    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.try_write_vectored(pieces),
            Self::Device(device) => {
                for piece in pieces {
                    device.write_all(piece);
                }
                Ok(pieces.iter().map(|piece| piece.len()).sum())
            }
        }
    }

    /// Waits until more is taken.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.writable().await,
            Self::Device(_) => Ok(()),
        }
    }
}

/// The switch's end of a card that is a device of the kernel.
pub(crate) struct Device(AsyncFd<OwnedFd>);

impl Device {
    pub(crate) fn new(file: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "what is unsound with other types is not with an OwnedFd, and the replacement is unsafe to call"
        )]
        let file = AsyncFd::new(file)?;
        Ok(Self(file))
    }

    /// Waits until there is a frame.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await.map(|mut ready| ready.retain_ready())
    }

    /// Reads one frame.
    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_io(tokio::io::Interest::READABLE, |file| {
            Ok(rustix::io::read(file, &mut *into)?)
        })
    }

    /// Writes every frame of a piece. One that the kernel does not take is lost.
    fn write_all(&self, mut piece: &[u8]) {
        while let Some((prefix, rest)) = piece.split_first_chunk::<PREFIX>() {
            let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
            let Some((frame, rest)) = rest.split_at_checked(length) else {
                return;
            };
            let _ = rustix::io::write(self.0.get_ref(), frame);
            piece = rest;
        }
    }
}
