//! A FAT16 file system, as UEFI firmware reads it to find a boot loader. Names are of the 8.3 form.

use bytes::Bytes;

use crate::{Content, LayoutError, Sparse, Tree};

const SECTOR: usize = 512;
/// Entries of the root directory.
const ROOT_ENTRIES: usize = 512;
/// Below it would be FAT12, from `MAX_CLUSTERS` FAT32.
const MIN_CLUSTERS: usize = 4085;
const MAX_CLUSTERS: usize = 65525;
/// 1980-01-01, the first day there is.
const DATE: u16 = 0x21;
const DIRECTORY: u8 = 0x10;
const LABEL: u8 = 0x08;
const END: u16 = 0xffff;

struct Writer {
    /// Next of each cluster; the first two are not used.
    table: Vec<u16>,
    clusters: usize,
    data: Vec<(usize, Bytes)>,
}

/// A file system of `size` bytes with what is in the tree. Modes are lost: FAT has none.
pub fn build(tree: &Tree, size: u64, serial: u32, label: &str) -> Result<Sparse, LayoutError> {
    let full = LayoutError::Full {
        what: "FAT file system",
        room: size,
    };
    let sectors = usize::try_from(size / SECTOR as u64).map_err(|_| full.clone())?;
    let root_sectors = ROOT_ENTRIES * 32 / SECTOR;
    // One table entry of two bytes for each cluster of one sector; the tables' own sectors are taken off once, generously.
    let table_sectors = (sectors * 2).div_ceil(SECTOR);
    let clusters = sectors.saturating_sub(1 + 2 * table_sectors + root_sectors);
    if !(MIN_CLUSTERS..MAX_CLUSTERS).contains(&clusters) || sectors > usize::from(u16::MAX) {
        return Err(full);
    }
    let mut writer = Writer {
        table: vec![0xfff8, END],
        clusters,
        data: Vec::new(),
    };
    let mut root = vec![entry(&padded(label, 11), LABEL, 0, 0)];
    root.extend(
        writer
            .directory(tree, "", 0)
            .map_err(|error| error.unwrap_or(full.clone()))?,
    );
    if root.len() > ROOT_ENTRIES {
        return Err(full);
    }

    let mut boot = vec![0_u8; SECTOR];
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[3..11].copy_from_slice(b"FAIRWAY ");
    boot[11..13].copy_from_slice(&(SECTOR as u16).to_le_bytes());
    boot[13] = 1; // sectors of a cluster
    boot[14..16].copy_from_slice(&1_u16.to_le_bytes()); // sectors before the tables
    boot[16] = 2; // tables
    boot[17..19].copy_from_slice(&(ROOT_ENTRIES as u16).to_le_bytes());
    boot[19..21].copy_from_slice(&(sectors as u16).to_le_bytes());
    boot[21] = 0xf8;
    boot[22..24].copy_from_slice(&(table_sectors as u16).to_le_bytes());
    boot[24..26].copy_from_slice(&63_u16.to_le_bytes());
    boot[26..28].copy_from_slice(&255_u16.to_le_bytes());
    boot[36] = 0x80;
    boot[38] = 0x29;
    boot[39..43].copy_from_slice(&serial.to_le_bytes());
    boot[43..54].copy_from_slice(&padded(label, 11));
    boot[54..62].copy_from_slice(b"FAT16   ");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);

    let table: Bytes = writer
        .table
        .iter()
        .flat_map(|next| next.to_le_bytes())
        .collect::<Vec<u8>>()
        .into();
    let at = |sector: usize| (sector * SECTOR) as u64;
    let root_start = 1 + 2 * table_sectors;
    let mut image = Sparse::new(size);
    image.put(0, boot);
    image.put(at(1), table.clone());
    image.put(at(1 + table_sectors), table);
    image.put(at(root_start), root.concat());
    for (cluster, bytes) in writer.data {
        image.put(at(root_start + root_sectors + cluster - 2), bytes);
    }
    Ok(image)
}

impl Writer {
    /// Entries of a directory, with everything below it written. An error without a cause is a lack of room.
    fn directory(
        &mut self,
        tree: &Tree,
        path: &str,
        parent: u16,
    ) -> Result<Vec<[u8; 32]>, Option<LayoutError>> {
        let mut entries = Vec::new();
        for (name, node) in tree.children(path) {
            let full_path = match path {
                "" => name.to_owned(),
                path => format!("{path}/{name}"),
            };
            let short = short_name(name).ok_or_else(|| {
                Some(LayoutError::Unrepresentable {
                    path: full_path.clone(),
                    why: "FAT names are short here: eight letters and three",
                })
            })?;
            match &node.content {
                Content::File(bytes) => {
                    let cluster = self.put(bytes.clone()).ok_or(None)?;
                    let size = u32::try_from(bytes.len()).map_err(|_| None)?;
                    entries.push(entry(&short, 0, cluster, size));
                }
                Content::Directory => {
                    // The directory's own place is known before what is in it: its size depends on the names alone.
                    let count = tree.children(&full_path).count() + 2;
                    let own = self.reserve(count * 32).ok_or(None)?;
                    let mut inner = vec![
                        entry(&padded(".", 11), DIRECTORY, own, 0),
                        entry(&padded("..", 11), DIRECTORY, parent, 0),
                    ];
                    inner.extend(self.directory(tree, &full_path, own)?);
                    self.data.push((usize::from(own), inner.concat().into()));
                    entries.push(entry(&short, DIRECTORY, own, 0));
                }
                Content::Symlink(_) => {
                    return Err(Some(LayoutError::Unrepresentable {
                        path: full_path,
                        why: "FAT has no symbolic links",
                    }));
                }
            }
        }
        Ok(entries)
    }

    fn put(&mut self, bytes: Bytes) -> Option<u16> {
        if bytes.is_empty() {
            return Some(0);
        }
        let first = self.reserve(bytes.len())?;
        self.data.push((usize::from(first), bytes));
        Some(first)
    }

    /// A chain of consecutive clusters for so many bytes; its first.
    fn reserve(&mut self, bytes: usize) -> Option<u16> {
        let count = bytes.div_ceil(SECTOR);
        let first = self.table.len();
        if first + count > self.clusters + 2 {
            return None;
        }
        for cluster in first + 1..first + count {
            self.table.push(cluster as u16);
        }
        self.table.push(END);
        Some(first as u16)
    }
}

fn entry(name: &[u8; 11], attributes: u8, cluster: u16, size: u32) -> [u8; 32] {
    let mut entry = [0; 32];
    entry[..11].copy_from_slice(name);
    entry[11] = attributes;
    for date in [16, 18, 24] {
        entry[date..date + 2].copy_from_slice(&DATE.to_le_bytes());
    }
    entry[26..28].copy_from_slice(&cluster.to_le_bytes());
    entry[28..].copy_from_slice(&size.to_le_bytes());
    entry
}

fn padded(text: &str, length: usize) -> [u8; 11] {
    let mut out = [b' '; 11];
    for (place, byte) in out.iter_mut().take(length).zip(text.bytes()) {
        *place = byte.to_ascii_uppercase();
    }
    out
}

fn short_name(name: &str) -> Option<[u8; 11]> {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let is_plain = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if stem.is_empty() || stem.len() > 8 || extension.len() > 3 || !is_plain(stem) || !is_plain(extension) {
        return None;
    }
    let mut short = padded(stem, 8);
    short[8..].copy_from_slice(&padded(extension, 3)[..3]);
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_in_its_directories() {
        let mut tree = Tree::default();
        tree.file("EFI/BOOT/BOOTX64.EFI", 0o644, vec![7_u8; 1300]);
        let image = build(&tree, 8 << 20, 1, "esp").unwrap();
        let mut bytes = vec![0_u8; image.len() as usize];
        for (offset, piece) in image.pieces() {
            bytes[offset as usize..][..piece.len()].copy_from_slice(piece);
        }
        let table_sectors = usize::from(u16::from_le_bytes([bytes[22], bytes[23]]));
        let root = (1 + 2 * table_sectors) * 512;
        assert_eq!(&bytes[root..root + 11], b"ESP        ");
        assert_eq!(&bytes[root + 32..root + 43], b"EFI        ");
        let data = root + ROOT_ENTRIES * 32;
        // EFI is cluster 2, BOOT 3, the file 4 to 6.
        assert_eq!(&bytes[data + 64..data + 75], b"BOOT       ");
        assert_eq!(&bytes[data + 512 + 64..data + 512 + 75], b"BOOTX64 EFI");
        assert_eq!(bytes[data + 1024], 7);
        assert_eq!(&bytes[512 + 8..512 + 14], [5, 0, 6, 0, 0xff, 0xff]);
    }

    #[test]
    fn what_fat_cannot_say_is_refused() {
        let mut tree = Tree::default();
        tree.file("a-long-name.conf", 0o644, "x");
        assert!(matches!(
            build(&tree, 8 << 20, 1, "esp"),
            Err(LayoutError::Unrepresentable { .. })
        ));
        let mut tree = Tree::default();
        tree.file("BIG", 0o644, vec![0_u8; 9 << 20]);
        assert!(matches!(
            build(&tree, 8 << 20, 1, "esp"),
            Err(LayoutError::Full { .. })
        ));
    }
}
