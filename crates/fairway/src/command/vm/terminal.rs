//! The terminal that somebody sits at, or whatever stands in its place.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;

use anyhow::Context as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::Handle;

/// Control and `]`, which leaves a console.
pub(super) const ESCAPE: u8 = 0x1d;
/// How much may be typed ahead.
const AHEAD: usize = 16 << 10;

/// A terminal that hands on every key, until this is dropped.
pub(super) struct Raw(Option<Termios>);

impl Raw {
    /// Takes the terminal, if there is one.
    pub(super) fn take() -> anyhow::Result<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Ok(Self(None));
        }
        let before = tcgetattr(&stdin).context("the terminal cannot be asked how it is set")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).context("Make raw terminal failed")?;
        Ok(Self(Some(before)))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // Nobody is left to tell.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Standard input as it comes. It is read by a thread of its own, which nobody waits for in the end. A piece that
/// begins with `escape` is the end.
pub(super) fn keyboard(escape: Option<u8>) -> DuplexStream {
    let (mut into, out) = duplex(AHEAD);
    let runtime = Handle::current();
    std::thread::spawn(move || {
        let mut piece = [0; 1024];
        let mut stdin = std::io::stdin().lock();
        loop {
            let count = match stdin.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if Some(piece[0]) == escape || runtime.block_on(into.write_all(&piece[..count])).is_err() {
                return;
            }
        }
    });
    out
}

/// Standard output, where what is written is out when it is flushed.
pub(super) fn screen() -> anyhow::Result<tokio::fs::File> {
    let own = std::io::stdout().as_fd().try_clone_to_owned();
    let own = own.context("standard output cannot be used")?;
    Ok(tokio::fs::File::from_std(File::from(own)))
}
