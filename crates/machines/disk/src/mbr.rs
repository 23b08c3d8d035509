//! A partition table of the old kind, with a boot loader before the first partition.
//!
//! Both BIOS and UEFI find their way by it, and a guest can make its last partition grow by changing four bytes, which a
//! GPT with its checksums and its copy at the end of the disk would not allow to a shell script.

use crate::{LayoutError, Sparse};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Where the first partition begins. Before it there is room for the boot loader.
pub const FIRST_PARTITION: u64 = 1 << 20;
/// Of the first sector, what the boot loader may use.
const BOOT_CODE: usize = 440;

/// The type of an EFI system partition.
pub const EFI_SYSTEM: u8 = 0xef;
/// The type of a Linux file system.
pub const LINUX: u8 = 0x83;

/// A partition.
#[derive(Debug)]
pub struct Partition {
    /// What it is for.
    pub kind: u8,
    /// Whether the boot loader lies in it; some firmware boots no disk without one.
    pub is_active: bool,
    /// What is in it.
    pub content: Sparse,
}

/// A disk of these partitions one after the other, each at a whole mebibyte. `boot` is the code of the first sector, `core` lies
/// right behind it.
pub fn disk(
    signature: u32,
    boot: &[u8],
    core: &[u8],
    partitions: Vec<Partition>,
) -> Result<Sparse, LayoutError> {
    let too_long = |what, room| Err(LayoutError::Full { what, room });
    if boot.len() < BOOT_CODE {
        return too_long("boot sector", boot.len() as u64);
    }
    if core.len() as u64 > FIRST_PARTITION - SECTOR {
        return too_long("boot loader", FIRST_PARTITION - SECTOR);
    }
    if partitions.len() > 4 {
        return too_long("partition table", 4 * 16);
    }
    let mut table = vec![0_u8; SECTOR as usize];
    table[..BOOT_CODE].copy_from_slice(&boot[..BOOT_CODE]);
    table[440..444].copy_from_slice(&signature.to_le_bytes());
    let mut disk = Sparse::new(0);
    let mut offset = FIRST_PARTITION;
    for (partition, entry) in partitions.into_iter().zip(table[446..510].chunks_exact_mut(16)) {
        let sectors = |bytes: u64| u32::try_from(bytes / SECTOR);
        let length = partition.content.len().next_multiple_of(SECTOR);
        let (Ok(first), Ok(count)) = (sectors(offset), sectors(length)) else {
            return too_long("disk", u64::from(u32::MAX) * SECTOR);
        };
        entry[0] = if partition.is_active { 0x80 } else { 0 };
        // Cylinders, heads and sectors say nothing on a disk of today: the largest there are.
        entry[1..4].copy_from_slice(&[0xfe, 0xff, 0xff]);
        entry[4] = partition.kind;
        entry[5..8].copy_from_slice(&[0xfe, 0xff, 0xff]);
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..16].copy_from_slice(&count.to_le_bytes());
        disk.embed(offset, partition.content);
        offset = (offset + length).next_multiple_of(FIRST_PARTITION);
    }
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut whole = Sparse::new(offset);
    whole.put(0, table);
    whole.put(SECTOR, core.to_vec());
    whole.embed(0, disk);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other() {
        let partition = |length| Partition {
            kind: LINUX,
            is_active: true,
            content: Sparse::new(length),
        };
        let disk = disk(
            7,
            &[9; 512],
            &[1; 100],
            vec![partition(5 << 20), partition(3 << 20)],
        )
        .unwrap();
        assert_eq!(disk.len(), 9 << 20);
        let (_, table) = disk.pieces().next().unwrap();
        assert_eq!(&table[454..462], [0, 8, 0, 0, 0, 40, 0, 0]);
        assert_eq!(&table[470..478], [0, 48, 0, 0, 0, 24, 0, 0]);
        assert_eq!(&table[510..], [0x55, 0xaa]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(super::disk(0, &[0; 512], &vec![0; 1 << 20], Vec::new()).is_err());
        assert!(super::disk(0, &[0; 10], &[], Vec::new()).is_err());
    }
}
