//! Packed files, read as what is in them, within limits.

use std::io::{self, BufRead, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::format::{HEAD, Looks, looks};
use crate::{ImageError, Stage, failed};

/// How much memory unpacking may take. `xz -9` needs 65 MiB; who made a file that needs more did not mean well.
const MAX_MEMORY_KIB: u32 = 192 << 10;
/// The largest window of zstd, as `zstd -d` has it without being told otherwise.
const BUFFER: usize = 256 << 10;
/// Zeros in pieces of this size are not written.
const HOLE: usize = 64 << 10;
/// So often the free room is looked at.
const LOOK_EVERY: u64 = 64 << 20;
/// What must stay free on the host's disk.
const RESERVE: u64 = 512 << 20;

/// What may come out at most, and what it is called in messages.
pub(crate) struct Limit<'a> {
    pub(crate) what: &'a str,
    pub(crate) bytes: u64,
}

/// A reader of what is in a file, packed or not.
pub(crate) fn reader<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let found = looks(file.fill_buf()?);
    Ok(match found {
        Looks::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Looks::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, MAX_MEMORY_KIB)),
        Looks::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
            Box::new(decoder)
        }
        Looks::Disk(_) | Looks::Foreign(_) => Box::new(file),
    })
}

/// Writes everything into a staged file, with holes where there are zeros; how many bytes it has.
pub(crate) fn write(
    mut from: impl Read,
    stage: &Stage,
    limit: &Limit<'_>,
    mut progress: impl FnMut(u64),
) -> Result<u64, ImageError> {
    let unreadable = |error: io::Error| ImageError::Unusable {
        what: limit.what.to_owned(),
        why: format!("it cannot be unpacked: {error}; it may not have been transferred as a whole"),
    };
    let mut buffer = vec![0; BUFFER];
    let (mut at, mut written) = (0_u64, 0_u64);
    let mut next_look = 0;
    loop {
        let count = fill(&mut from, &mut buffer).map_err(unreadable)?;
        if count == 0 {
            break;
        }
        if at + count as u64 > limit.bytes {
            return Err(ImageError::TooLarge {
                what: limit.what.to_owned(),
                limit: limit.bytes,
            });
        }
        for (index, piece) in buffer[..count].chunks(HOLE).enumerate() {
            if piece.iter().any(|byte| *byte != 0) {
                let offset = at + (index * HOLE) as u64;
                stage
                    .file()
                    .write_all_at(piece, offset)
                    .map_err(failed("writing", stage.path()))?;
                written += piece.len() as u64;
            }
        }
        at += count as u64;
        progress(at);
        if written >= next_look {
            room(stage.path(), limit.what)?;
            next_look = written + LOOK_EVERY;
        }
    }
    stage
        .file()
        .set_len(at)
        .and_then(|()| stage.file().flush())
        .map_err(failed("writing", stage.path()))?;
    Ok(at)
}

/// Refuses to fill the host's disk.
pub(crate) fn room(path: &Path, what: &str) -> Result<(), ImageError> {
    let directory = path.parent().unwrap_or(path);
    let Ok(found) = rustix::fs::statvfs(directory) else {
        return Ok(());
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    match free >= RESERVE {
        true => Ok(()),
        false => Err(ImageError::NoRoom {
            what: what.to_owned(),
            path: directory.to_owned(),
            free,
            reserve: RESERVE,
        }),
    }
}

/// Reads until the buffer is full or there is no more.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match from.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// The beginning of a file.
pub(crate) fn head(path: &Path) -> Result<Vec<u8>, ImageError> {
    let mut head = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(HEAD as u64).read_to_end(&mut head))
        .map_err(failed("reading", path))?;
    Ok(head)
}
