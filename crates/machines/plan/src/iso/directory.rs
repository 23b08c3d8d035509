//! The directories of one tree: their records and the tables of paths to them.

use std::collections::HashSet;

use super::encode::{MOMENT, both16, both32};
use super::rock_ridge::{Continuation, Entries};
use super::tree::Tree;
use super::{SECTOR, names, pad, sectors};

/// Bytes of a record without its name.
const RECORD: usize = 33;

/// What a record leads to.
#[derive(Clone, Copy, Debug)]
enum Target {
    Folder(usize),
    File(usize),
}

#[derive(Debug)]
struct Record {
    name: Vec<u8>,
    target: Target,
    more: Entries,
}

impl Record {
    fn base(name: &[u8]) -> usize {
        // Records begin at even places, and so does what follows the name.
        (RECORD + name.len()).next_multiple_of(2)
    }

    fn length(&self) -> usize {
        (Self::base(&self.name) + self.more.length()).next_multiple_of(2)
    }
}

/// The directories of a tree, in the order of the path tables.
#[derive(Debug)]
pub(super) struct Directories {
    /// Numbers of the tree's folders in the order of the tables.
    order: Vec<usize>,
    /// Names in the tables, by folder.
    names: Vec<Vec<u8>>,
    /// Records by folder.
    records: Vec<Vec<Record>>,
    /// Bytes of each folder.
    lengths: Vec<usize>,
    /// The folder that each folder is in.
    parents: Vec<usize>,
    /// First sector of each folder.
    sectors: Vec<u32>,
    table_length: usize,
    tables: [u32; 2],
    kept: Continuation,
}

impl Directories {
    pub(super) fn plain(tree: &Tree<'_>) -> Self {
        Self::of(tree, true)
    }

    pub(super) fn joliet(tree: &Tree<'_>) -> Self {
        Self::of(tree, false)
    }

    fn of(tree: &Tree<'_>, plain: bool) -> Self {
        let count = tree.folders.len();
        let mut kept = Continuation::default();
        let mut folder_names = vec![vec![0_u8]; count];
        let mut records = Vec::with_capacity(count);
        for (number, folder) in tree.folders.iter().enumerate() {
            let mut taken = HashSet::new();
            let mut own = Vec::new();
            let folders = folder
                .folders
                .iter()
                .map(|(name, it)| (name, Target::Folder(*it)));
            let files = folder.files.iter().map(|(name, it)| (name, Target::File(*it)));
            for (name, target) in folders.chain(files) {
                let is_file = matches!(target, Target::File(_));
                let written = if plain {
                    names::plain(name, is_file, &mut taken)
                } else {
                    names::joliet(name, &mut taken)
                };
                if let Target::Folder(it) = target {
                    folder_names[it] = written.clone();
                }
                let more = if plain {
                    Entries::of_name(name, !is_file, Record::base(&written), &mut kept)
                } else {
                    Entries::default()
                };
                own.push(Record {
                    name: written,
                    target,
                    more,
                });
            }
            own.sort_by(|a, b| a.name.cmp(&b.name));
            let itself = match (plain, number) {
                (false, _) => Entries::default(),
                (true, 0) => Entries::of_root(&mut kept),
                (true, _) => Entries::of_directory(),
            };
            let above = if plain {
                Entries::of_directory()
            } else {
                Entries::default()
            };
            let fixed = [(0, number, itself), (1, folder.parent, above)];
            let fixed = fixed.map(|(name, target, more)| Record {
                name: vec![name],
                target: Target::Folder(target),
                more,
            });
            records.push(fixed.into_iter().chain(own).collect::<Vec<_>>());
        }
        let parents = tree.folders.iter().map(|it| it.parent).collect();
        let mut found = Self {
            order: Vec::new(),
            lengths: records.iter().map(|it| length(it)).collect(),
            names: folder_names,
            records,
            parents,
            sectors: vec![0; count],
            table_length: 0,
            tables: [0; 2],
            kept,
        };
        found.order = found.in_table_order(tree);
        let entry = |folder: &usize| (8 + found.names[*folder].len()).next_multiple_of(2);
        found.table_length = found.order.iter().map(entry).sum();
        found
    }

    /// By depth, then by the number of the directory above, then by name.
    fn in_table_order(&self, tree: &Tree<'_>) -> Vec<usize> {
        let mut order = vec![0];
        let mut at = 0;
        while let Some(folder) = order.get(at).copied() {
            let mut below: Vec<usize> = tree.folders[folder].folders.values().copied().collect();
            below.sort_by(|a, b| self.names[*a].cmp(&self.names[*b]));
            order.extend(below);
            at += 1;
        }
        order
    }

    pub(super) fn tables_at(&mut self, next: &mut u32) {
        for table in &mut self.tables {
            *table = *next;
            *next += sectors(self.table_length);
        }
    }

    pub(super) fn records_at(&mut self, next: &mut u32) {
        for folder in &self.order {
            self.sectors[*folder] = *next;
            *next += sectors(self.lengths[*folder]);
        }
    }

    pub(super) fn continuation_at(&mut self, next: &mut u32) {
        self.kept.sector = *next;
        *next += sectors(self.kept.bytes.len());
    }

    /// Bytes of a path table.
    pub(super) fn table_length(&self) -> u32 {
        u32::try_from(self.table_length).unwrap_or(u32::MAX)
    }

    /// First sectors of the little-endian and the big-endian path table.
    pub(super) fn tables(&self) -> [u32; 2] {
        self.tables
    }

    /// The root's record, as a descriptor has it.
    pub(super) fn root(&self) -> Vec<u8> {
        record(&[0], self.sectors[0], self.lengths[0], true, &[])
    }

    pub(super) fn write_tables(&self, image: &mut Vec<u8>) {
        for big in [false, true] {
            for folder in &self.order {
                let name = &self.names[*folder];
                let above = self
                    .order
                    .iter()
                    .position(|it| *it == self.parents[*folder])
                    .unwrap_or(0);
                let above = u16::try_from(above + 1).unwrap_or(u16::MAX);
                let sector = self.sectors[*folder];
                image.extend([u8::try_from(name.len()).unwrap_or(u8::MAX), 0]);
                if big {
                    image.extend(sector.to_be_bytes());
                    image.extend(above.to_be_bytes());
                } else {
                    image.extend(sector.to_le_bytes());
                    image.extend(above.to_le_bytes());
                }
                image.extend(name);
                if name.len() % 2 == 1 {
                    image.push(0);
                }
            }
            pad(image);
        }
    }

    pub(super) fn write_records(&self, tree: &Tree<'_>, extents: &[u32], image: &mut Vec<u8>) {
        for folder in &self.order {
            for entry in &self.records[*folder] {
                let (sector, size, directory) = match entry.target {
                    Target::Folder(it) => (self.sectors[it], self.lengths[it], true),
                    Target::File(it) => (extents[it], tree.files[it].content.len(), false),
                };
                let more = entry.more.write(&self.kept);
                let bytes = record(&entry.name, sector, size, directory, &more);
                if image.len() % SECTOR + bytes.len() > SECTOR {
                    pad(image);
                }
                image.extend(bytes);
            }
            pad(image);
        }
    }

    pub(super) fn write_continuation(&self, image: &mut Vec<u8>) {
        image.extend_from_slice(&self.kept.bytes);
        pad(image);
    }
}

/// Bytes of a directory: whole sectors, and no record across their borders.
fn length(records: &[Record]) -> usize {
    let end = records.iter().fold(0_usize, |at, entry| {
        let start = if at % SECTOR + entry.length() > SECTOR {
            at.next_multiple_of(SECTOR)
        } else {
            at
        };
        start + entry.length()
    });
    end.next_multiple_of(SECTOR)
}

fn record(name: &[u8], sector: u32, size: usize, directory: bool, more: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend(both32(sector));
    bytes.extend(both32(u32::try_from(size).unwrap_or(u32::MAX)));
    bytes.extend(MOMENT);
    bytes.extend([if directory { 2 } else { 0 }, 0, 0]);
    bytes.extend(both16(1));
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend(name);
    bytes.resize(Record::base(name), 0);
    bytes.extend(more);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes[0] = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    bytes
}
