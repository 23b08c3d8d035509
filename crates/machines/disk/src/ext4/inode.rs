//! An inode: what a file is, and in which blocks.

use crate::LayoutError;

/// The most blocks that one extent stands for.
pub(super) const MAX_RUN: u64 = 32768;
/// The most extents that have room in an inode. Content lies without gaps, so these are some 500 MB.
const MAX_RUNS: usize = 4;
/// The bytes of an inode in which its extents are, or a short link.
const PLACE: usize = 60;
const WITH_EXTENTS: u32 = 0x0008_0000;

/// Consecutive blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) length: u64,
}

/// An inode.
pub(super) struct Inode {
    mode: u16,
    uid: u32,
    gid: u32,
    links: u16,
    size: u64,
    blocks: u64,
    runs: usize,
    place: [u8; PLACE],
    has_extents: bool,
}

/// Whether a link's target has room in the inode.
pub(super) fn is_short(target: &str) -> bool {
    target.len() < PLACE
}

impl Inode {
    pub(super) fn new(mode: u16, links: u16, size: u64, runs: &[Run]) -> Self {
        let mut place = [0_u8; PLACE];
        let count = runs.len().min(MAX_RUNS) as u16;
        for (at, value) in [(0, 0xf30a), (2, count), (4, MAX_RUNS as u16)] {
            place[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        let mut logical = 0_u64;
        for (run, entry) in runs.iter().zip(place[12..].chunks_exact_mut(12)) {
            entry[..4].copy_from_slice(&(logical as u32).to_le_bytes());
            entry[4..6].copy_from_slice(&(run.length as u16).to_le_bytes());
            entry[6..8].copy_from_slice(&((run.start >> 32) as u16).to_le_bytes());
            entry[8..].copy_from_slice(&(run.start as u32).to_le_bytes());
            logical += run.length;
        }
        Self {
            mode,
            uid: 0,
            gid: 0,
            links,
            size,
            blocks: runs.iter().map(|run| run.length).sum(),
            runs: runs.len(),
            place,
            has_extents: true,
        }
    }

    /// A link whose target lies in the inode itself.
    pub(super) fn short_link(target: &str) -> Self {
        let mut place = [0_u8; PLACE];
        for (byte, letter) in place.iter_mut().zip(target.bytes()) {
            *byte = letter;
        }
        Self {
            mode: 0o120_777,
            uid: 0,
            gid: 0,
            links: 1,
            size: target.len() as u64,
            blocks: 0,
            runs: 0,
            place,
            has_extents: false,
        }
    }

    /// The same, somebody's.
    pub(super) fn of(mut self, uid: u32, gid: u32) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Refuses what has more extents than room.
    pub(super) fn check(self, path: &str) -> Result<Self, LayoutError> {
        match self.runs <= MAX_RUNS {
            true => Ok(self),
            false => Err(LayoutError::Unrepresentable {
                path: path.to_owned(),
                why: "the file is too large for an image that is built here",
            }),
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    /// Where its content is, as it stands in the inode.
    pub(super) fn place(&self) -> [u8; PLACE] {
        self.place
    }

    /// The inode as it stands in the table.
    pub(super) fn bytes(&self, time: u32) -> Vec<u8> {
        let mut out = vec![0_u8; super::INODE_SIZE as usize];
        for (at, value) in [
            (0, self.mode),
            (2, self.uid as u16),
            (24, self.gid as u16),
            (26, self.links),
            (120, (self.uid >> 16) as u16),
            (122, (self.gid >> 16) as u16),
            (128, 32),
        ] {
            out[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        let sectors = self.blocks * (super::BLOCK / 512);
        for (at, value) in [
            (4, self.size as u32),
            (8, time),
            (12, time),
            (16, time),
            (28, sectors as u32),
            (32, if self.has_extents { WITH_EXTENTS } else { 0 }),
            (108, (self.size >> 32) as u32),
            (144, time),
        ] {
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        out[40..100].copy_from_slice(&self.place);
        out
    }
}
