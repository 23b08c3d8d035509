//! A qcow2 file in which nothing was written yet: an empty disk, or an empty layer over another file.
//!
//! Such a file is a header and three tables, which are known from its size alone. Making it here takes no process, so that
//! the disk of a machine is there at once.

use super::MAGIC;

/// The size of clusters that QEMU takes, too, if nobody says otherwise.
const CLUSTER: u64 = 64 << 10;
const CLUSTER_BITS: u32 = 16;
/// Reference counts of 16 bits.
const REFCOUNT_ORDER: u32 = 4;
const HEADER: u32 = 104;
const BACKING_FORMAT: u32 = 0xe279_2aca;
/// The header, the table of reference counts, and its one block come first.
const L1_AT: u64 = 3 * CLUSTER;
/// A cluster of the second table says where this many bytes of the disk are.
const PER_L1_ENTRY: u64 = CLUSTER * (CLUSTER / 8);
/// QEMU opens no file with a longer first table.
const MAX_L1: u64 = 32 << 20;
/// The longest name that a header may have.
const MAX_NAME: usize = 1023;

/// What lies behind a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backing<'a> {
    /// The name of the file, as the layer's directory sees it.
    pub file: &'a str,
    /// QEMU's word for its format.
    pub format: &'a str,
}

/// Why there is no such file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmptyError {
    /// No disk has this size.
    #[error("a disk cannot have {0} bytes")]
    Size(u64),
    /// The name behind it does not fit into a header.
    #[error("the name of the file behind the layer is too long")]
    Name,
}

/// The bytes of an empty file for a disk of `size` bytes, of which the last sector may be rounded up.
pub fn empty(size: u64, backing: Option<Backing<'_>>) -> Result<Vec<u8>, EmptyError> {
    let rounded = size
        .checked_next_multiple_of(512)
        .filter(|size| *size > 0)
        .ok_or(EmptyError::Size(size))?;
    let l1_entries = rounded.div_ceil(PER_L1_ENTRY);
    let l1_bytes = l1_entries * 8;
    if l1_bytes > MAX_L1 {
        return Err(EmptyError::Size(size));
    }
    let l1_clusters = l1_bytes.div_ceil(CLUSTER);
    let (Ok(entries), Ok(length)) = (
        u32::try_from(l1_entries),
        usize::try_from(L1_AT + l1_clusters * CLUSTER),
    ) else {
        return Err(EmptyError::Size(size));
    };
    let mut file = vec![0; length];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &MAGIC);
    for (at, value) in [
        (4, 3),
        (20, CLUSTER_BITS),
        (36, entries),
        (56, 1),
        (96, REFCOUNT_ORDER),
        (100, HEADER),
    ] {
        put(at, &value.to_be_bytes());
    }
    for (at, value) in [(24, rounded), (40, L1_AT), (48, CLUSTER)] {
        put(at, &value.to_be_bytes());
    }
    if let Some(backing) = backing {
        if backing.file.len() > MAX_NAME || backing.format.len() > MAX_NAME || backing.file.is_empty() {
            return Err(EmptyError::Name);
        }
        let extension = HEADER as usize;
        put(extension, &BACKING_FORMAT.to_be_bytes());
        put(
            extension + 4,
            &u32::try_from(backing.format.len())
                .unwrap_or_default()
                .to_be_bytes(),
        );
        put(extension + 8, backing.format.as_bytes());
        // The end of the extensions is eight zeros, which are there.
        let name = extension + 8 + backing.format.len().next_multiple_of(8) + 8;
        put(name, backing.file.as_bytes());
        put(8, &(name as u64).to_be_bytes());
        put(
            16,
            &u32::try_from(backing.file.len())
                .unwrap_or_default()
                .to_be_bytes(),
        );
    }
    // One block of reference counts is enough: each of these clusters is used once.
    let block = 2 * CLUSTER;
    put(usize::try_from(CLUSTER).unwrap_or_default(), &block.to_be_bytes());
    for cluster in 0..3 + l1_clusters {
        let at = usize::try_from(block + cluster * 2).unwrap_or_default();
        put(at, &1_u16.to_be_bytes());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::Header;
    use super::*;

    #[test]
    fn the_reader_understands_it() {
        for size in [1, 512, 1 << 20, 10 << 30, 3 << 40] {
            let file = empty(size, None).unwrap();
            let header = Header::read(&file).unwrap();
            assert_eq!(header.virtual_size, size.next_multiple_of(512));
            assert_eq!(header.judge(file.len() as u64, u64::MAX), Ok(()), "{size}");
        }
        let over = Backing {
            file: "disk.base",
            format: "raw",
        };
        let header = Header::read(&empty(1 << 30, Some(over)).unwrap()).unwrap();
        assert_eq!(header.backing_file.as_deref(), Some("disk.base"));
        assert!(!header.has_data_file);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(empty(0, None), Err(EmptyError::Size(0)));
        assert_eq!(empty(u64::MAX, None), Err(EmptyError::Size(u64::MAX)));
        assert!(matches!(empty(1 << 60, None), Err(EmptyError::Size(_))));
        let long = "x".repeat(1024);
        let over = |file| {
            Some(Backing {
                file,
                format: "qcow2",
            })
        };
        assert_eq!(empty(512, over(&long)), Err(EmptyError::Name));
        assert_eq!(empty(512, over("")), Err(EmptyError::Name));
    }
}
