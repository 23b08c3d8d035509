//! An ext4 file system with what a tree holds, made without mounting anything and without being root.
//!
//! It has a journal and extents, and none of the features that only spare time while a large disk is made. Content lies in
//! the order of the tree without gaps; everything else is zero. The guest's kernel can make it grow while it is mounted.

mod inode;

use bytes::Bytes;

use crate::{Content, LayoutError, Node, Sparse, Tree};
use inode::{Inode, Run};

/// Bytes of a block.
const BLOCK: u64 = 4096;
/// As many blocks as one block of bits counts.
const BLOCKS_PER_GROUP: u64 = 8 * BLOCK;
const INODE_SIZE: u64 = 256;
const INODES_PER_GROUP: u64 = 4096;
const TABLE_BLOCKS: u64 = INODES_PER_GROUP * INODE_SIZE / BLOCK;
/// The smallest journal that the kernel takes.
const JOURNAL_BLOCKS: u64 = 1024;
const ROOT: u32 = 2;
const JOURNAL: u32 = 8;
/// The first number that is not reserved; by custom it is the directory for what a check finds.
const LOST_AND_FOUND: u32 = 11;

/// What a file system is called, and from when it is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its number, which boot loaders search for.
    pub uuid: [u8; 16],
    /// Its name, of at most 16 bytes.
    pub label: String,
    /// Seconds since 1970, for everything in it.
    pub time: u32,
}

/// A file system of `size` bytes.
pub fn build(tree: &Tree, size: u64, identity: &Identity) -> Result<Sparse, LayoutError> {
    let mut writer = Writer::new(size, identity)?;
    let numbers = Numbers::of(tree);
    let journal = writer.journal()?;
    writer.inodes.push((JOURNAL, journal));
    writer.directory(
        tree,
        &numbers,
        "",
        ROOT,
        ROOT,
        &Node::new(0o755, Content::Directory),
    )?;
    let lost = writer.linear(&[(LOST_AND_FOUND, 2, "."), (ROOT, 2, "..")])?;
    let lost = Inode::new(0o040_700, 2, BLOCK, &lost);
    writer.inodes.push((LOST_AND_FOUND, lost));
    for (index, (path, node)) in tree.nodes().enumerate() {
        let number = numbers.nth(index);
        match &node.content {
            Content::Directory => {
                let parent = path
                    .rsplit_once('/')
                    .map_or(ROOT, |(parent, _)| numbers.at(parent));
                writer.directory(tree, &numbers, path, number, parent, node)?;
            }
            Content::File(bytes) => {
                let runs = writer.put(bytes)?;
                let inode = Inode::new(node.full_mode(), 1, bytes.len() as u64, &runs).of(node.uid, node.gid);
                writer.inodes.push((number, inode.check(path)?));
            }
            Content::Symlink(target) if inode::is_short(target) => {
                writer
                    .inodes
                    .push((number, Inode::short_link(target).of(node.uid, node.gid)));
            }
            Content::Symlink(target) => {
                let runs = writer.put(&Bytes::copy_from_slice(target.as_bytes()))?;
                let inode =
                    Inode::new(node.full_mode(), 1, target.len() as u64, &runs).of(node.uid, node.gid);
                writer.inodes.push((number, inode));
            }
        }
    }
    writer.finish()
}

/// Which path has which inode.
struct Numbers<'a>(Vec<&'a str>);

impl<'a> Numbers<'a> {
    fn of(tree: &'a Tree) -> Self {
        Self(tree.nodes().map(|(path, _)| path).collect())
    }

    fn nth(&self, index: usize) -> u32 {
        LOST_AND_FOUND + 1 + index as u32
    }

    /// The tree gives paths in order, so that they can be searched.
    fn at(&self, path: &str) -> u32 {
        self.0.binary_search(&path).map_or(ROOT, |index| self.nth(index))
    }
}

struct Writer<'a> {
    size: u64,
    blocks: u64,
    groups: u64,
    identity: &'a Identity,
    image: Sparse,
    /// Blocks below are in use.
    next: u64,
    inodes: Vec<(u32, Inode)>,
}

impl<'a> Writer<'a> {
    fn new(size: u64, identity: &'a Identity) -> Result<Self, LayoutError> {
        let blocks = size / BLOCK;
        let mut writer = Self {
            size,
            blocks,
            groups: blocks.div_ceil(BLOCKS_PER_GROUP),
            identity,
            image: Sparse::new(size),
            next: 0,
            inodes: Vec::new(),
        };
        // A last group in which its own tables have no room does not exist.
        let last = writer.blocks % BLOCKS_PER_GROUP;
        if last != 0 && last < writer.overhead(writer.groups - 1) + 16 {
            writer.groups -= 1;
            writer.blocks -= last;
        }
        if writer.groups == 0 || u32::try_from(writer.blocks).is_err() {
            return Err(writer.full());
        }
        Ok(writer)
    }

    fn full(&self) -> LayoutError {
        LayoutError::Full {
            what: "ext4 file system",
            room: self.size,
        }
    }

    /// Blocks of the table of groups.
    fn descriptor_blocks(&self) -> u64 {
        (self.groups * 32).div_ceil(BLOCK)
    }

    /// Blocks at the beginning of a group that a copy of the superblock and of the table of groups take.
    fn superblock_blocks(&self, group: u64) -> u64 {
        match has_superblock(group) {
            true => 1 + self.descriptor_blocks(),
            false => 0,
        }
    }

    /// Blocks at the beginning of a group that hold no content.
    fn overhead(&self, group: u64) -> u64 {
        self.superblock_blocks(group) + 2 + TABLE_BLOCKS
    }

    /// The next blocks that are free.
    fn allocate(&mut self, mut count: u64) -> Result<Vec<Run>, LayoutError> {
        let mut runs: Vec<Run> = Vec::new();
        while count > 0 {
            let group = self.next / BLOCKS_PER_GROUP;
            let start = group * BLOCKS_PER_GROUP;
            self.next = self.next.max(start + self.overhead(group));
            let end = (start + BLOCKS_PER_GROUP).min(self.blocks);
            if group >= self.groups || self.next >= end {
                if end >= self.blocks {
                    return Err(self.full());
                }
                self.next = end;
                continue;
            }
            let length = count.min(end - self.next).min(inode::MAX_RUN);
            runs.push(Run {
                start: self.next,
                length,
            });
            self.next += length;
            count -= length;
        }
        Ok(runs)
    }

    /// Puts content into the next free blocks.
    fn put(&mut self, bytes: &Bytes) -> Result<Vec<Run>, LayoutError> {
        let runs = self.allocate((bytes.len() as u64).div_ceil(BLOCK))?;
        let mut rest = bytes.clone();
        for run in &runs {
            let take = rest.len().min((run.length * BLOCK) as usize);
            self.image.put(run.start * BLOCK, rest.split_to(take));
        }
        Ok(runs)
    }

    fn journal(&mut self) -> Result<Inode, LayoutError> {
        let runs = self.allocate(JOURNAL_BLOCKS)?;
        let mut head = vec![0_u8; 1024];
        // The journal counts in the other direction: big-endian. Magic, kind, sequence; block size, length, first, sequence.
        for (at, value) in [
            (0, 0xc03b_3998),
            (4, 4),
            (12, BLOCK as u32),
            (16, JOURNAL_BLOCKS as u32),
            (20, 1),
            (24, 1),
            (64, 1), // users
        ] {
            head[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        head[48..64].copy_from_slice(&self.identity.uuid);
        if let Some(run) = runs.first() {
            self.image.put(run.start * BLOCK, head);
        }
        Ok(Inode::new(0o100_600, 1, JOURNAL_BLOCKS * BLOCK, &runs))
    }

    fn directory(
        &mut self,
        tree: &Tree,
        numbers: &Numbers<'_>,
        path: &str,
        own: u32,
        parent: u32,
        node: &Node,
    ) -> Result<(), LayoutError> {
        let mut entries = vec![(own, 2, "."), (parent, 2, "..")];
        let mut links = 2;
        if own == ROOT {
            entries.push((LOST_AND_FOUND, 2, "lost+found"));
            links += 1;
        }
        for (name, child) in tree.children(path) {
            let kind = match child.content {
                Content::File(_) => 1,
                Content::Directory => 2,
                Content::Symlink(_) => 7,
            };
            links += u16::from(kind == 2);
            let full_path = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}/{name}")
            };
            if name.len() > 255 {
                return Err(LayoutError::Unrepresentable {
                    path: full_path,
                    why: "a name has at most 255 bytes",
                });
            }
            entries.push((numbers.at(&full_path), kind, name));
        }
        let runs = self.linear(&entries)?;
        let length = runs.iter().map(|run| run.length * BLOCK).sum();
        let inode = Inode::new(node.full_mode(), links, length, &runs).of(node.uid, node.gid);
        self.inodes.push((own, inode));
        Ok(())
    }

    /// Blocks of a directory: entries one after the other, none across the end of a block, the last up to it.
    fn linear(&mut self, entries: &[(u32, u8, &str)]) -> Result<Vec<Run>, LayoutError> {
        let block = BLOCK as usize;
        let mut out: Vec<u8> = Vec::new();
        let mut last = 0;
        for (number, kind, name) in entries {
            let length = (8 + name.len()).next_multiple_of(4);
            let used = out.len() % block;
            if !out.is_empty() && (used == 0 || used + length > block) {
                let end = out.len().next_multiple_of(block);
                let stretched = (end - last) as u16;
                out[last + 4..last + 6].copy_from_slice(&stretched.to_le_bytes());
                out.resize(end, 0);
            }
            last = out.len();
            out.extend(number.to_le_bytes());
            out.extend((length as u16).to_le_bytes());
            out.push(name.len() as u8);
            out.push(*kind);
            out.extend(name.as_bytes());
            out.resize(last + length, 0);
        }
        let end = out.len().next_multiple_of(block);
        let stretched = (end - last) as u16;
        out[last + 4..last + 6].copy_from_slice(&stretched.to_le_bytes());
        out.resize(end, 0);
        self.put(&out.into())
    }

    /// Tables, bits and superblocks, when everything else has its place.
    fn finish(mut self) -> Result<Sparse, LayoutError> {
        let used_inodes = self
            .inodes
            .iter()
            .map(|(number, _)| u64::from(*number))
            .max()
            .unwrap_or(0);
        if used_inodes > self.groups * INODES_PER_GROUP {
            return Err(self.full());
        }
        let mut descriptors = Vec::new();
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for group in 0..self.groups {
            let start = group * BLOCKS_PER_GROUP;
            let length = BLOCKS_PER_GROUP.min(self.blocks - start);
            let used = self
                .next
                .saturating_sub(start)
                .clamp(self.overhead(group), length);
            let inodes = used_inodes
                .saturating_sub(group * INODES_PER_GROUP)
                .min(INODES_PER_GROUP);
            let bitmaps = start + self.superblock_blocks(group);
            self.image.put(bitmaps * BLOCK, bits(used, length));
            self.image
                .put((bitmaps + 1) * BLOCK, bits(inodes, INODES_PER_GROUP));
            let directories = self
                .inodes
                .iter()
                .filter(|(number, inode)| inode.is_directory() && group_of(*number) == group)
                .count();
            let mut descriptor = [0_u8; 32];
            for (at, value) in [(0, bitmaps), (4, bitmaps + 1), (8, bitmaps + 2)] {
                descriptor[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
            }
            for (at, value) in [
                (12, length - used),
                (14, INODES_PER_GROUP - inodes),
                (16, directories as u64),
            ] {
                descriptor[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
            }
            descriptors.extend(descriptor);
            free_blocks += length - used;
            free_inodes += INODES_PER_GROUP - inodes;
        }
        for (number, inode) in &self.inodes {
            let group = group_of(*number);
            let table = group * BLOCKS_PER_GROUP + self.superblock_blocks(group) + 2;
            let within = u64::from(number - 1) % INODES_PER_GROUP;
            let at = table * BLOCK + within * INODE_SIZE;
            self.image.put(at, inode.bytes(self.identity.time));
        }
        for group in (0..self.groups).filter(|group| has_superblock(*group)) {
            let start = group * BLOCKS_PER_GROUP * BLOCK;
            // The first one lies behind the room for a boot loader.
            let within = if group == 0 { 1024 } else { 0 };
            self.image
                .put(start + within, self.superblock(group, free_blocks, free_inodes));
            self.image.put(start + BLOCK, descriptors.clone());
        }
        Ok(self.image)
    }

    fn superblock(&self, group: u64, free_blocks: u64, free_inodes: u64) -> Vec<u8> {
        let mut out = vec![0_u8; 1024];
        let time = self.identity.time;
        for (at, value) in [
            (0, (self.groups * INODES_PER_GROUP) as u32),
            (4, self.blocks as u32),
            (12, free_blocks as u32),
            (16, free_inodes as u32),
            (24, 2), // 1024 << 2 is the size of a block
            (28, 2),
            (32, BLOCKS_PER_GROUP as u32),
            (36, BLOCKS_PER_GROUP as u32),
            (40, INODES_PER_GROUP as u32),
            (48, time),
            (64, time),
            (76, 1), // revision
            (84, LOST_AND_FOUND),
            (92, 0x0004 | 0x0008 | 0x0020), // journal, attributes, directories may have an index
            (96, 0x0002 | 0x0040),          // kinds in directories, extents
            (100, 0x0001 | 0x0002 | 0x0040), // few superblocks, large files, times beyond 2038
            (224, JOURNAL),
            (256, 0x000c), // mounts with attributes and access lists
            (264, time),
            (352, 0x0002), // hashes of names take characters as unsigned
        ] {
            out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [
            (54, 0xffff_u16), // no check after so many mounts
            (56, 0xef53),
            (58, 1), // clean
            (60, 1), // go on after an error
            (88, INODE_SIZE as u16),
            (90, group as u16),
            (348, 32),
            (350, 32),
        ] {
            out[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        out[104..120].copy_from_slice(&self.identity.uuid);
        for (place, byte) in out[120..136].iter_mut().zip(self.identity.label.bytes()) {
            *place = byte;
        }
        out[236..252].copy_from_slice(&self.identity.uuid);
        out[252] = 1; // half an MD4
        if let Some((_, journal)) = self.inodes.iter().find(|(number, _)| *number == JOURNAL) {
            // A copy of where the journal is.
            out[253] = 1;
            out[268..328].copy_from_slice(&journal.place());
            out[332..336].copy_from_slice(&((JOURNAL_BLOCKS * BLOCK) as u32).to_le_bytes());
        }
        out
    }
}

fn group_of(number: u32) -> u64 {
    u64::from(number - 1) / INODES_PER_GROUP
}

/// Copies of the superblock lie in the first two groups and in powers of 3, 5 and 7.
fn has_superblock(group: u64) -> bool {
    let is_power = |base: u64| {
        std::iter::successors(Some(base), |power| power.checked_mul(base))
            .take_while(|power| *power <= group)
            .any(|power| power == group)
    };
    group <= 1 || [3, 5, 7].into_iter().any(is_power)
}

/// A block of bits: the first `used` are set, and those that stand for nothing.
fn bits(used: u64, length: u64) -> Vec<u8> {
    (0..BLOCK)
        .map(|byte| {
            (0..8).fold(0_u8, |bits, bit| {
                let at = byte * 8 + bit;
                bits | (u8::from(at < used || at >= length) << bit)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            uuid: [7; 16],
            label: "root".to_owned(),
            time: 1_700_000_000,
        }
    }

    #[test]
    fn superblocks_lie_where_they_are_searched() {
        let with: Vec<u64> = (0..60).filter(|group| has_superblock(*group)).collect();
        assert_eq!(with, [0, 1, 3, 5, 7, 9, 25, 27, 49]);
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let mut tree = Tree::default();
        tree.file("etc/a", 0o644, "x");
        tree.symlink("b", "etc/a");
        let one = build(&tree, 64 << 20, &identity()).unwrap();
        assert_eq!(one, build(&tree, 64 << 20, &identity()).unwrap());
        assert_eq!(one.len(), 64 << 20);
    }

    #[test]
    fn a_tree_that_is_too_large_is_refused() {
        let mut tree = Tree::default();
        tree.file("big", 0o644, vec![1_u8; 60 << 20]);
        assert!(matches!(
            build(&tree, 64 << 20, &identity()),
            Err(LayoutError::Full { .. })
        ));
        assert!(build(&Tree::default(), 4096, &identity()).is_err());
    }

    #[test]
    fn bits_beyond_the_end_are_set() {
        let bits = bits(3, 16);
        assert_eq!(bits[..3], [0b111, 0, 0xff]);
        assert_eq!(bits.len(), 4096);
    }
}
