//! The descriptors at the beginning of an image.

use super::directory::Directories;
use super::encode::{NO_MOMENT, both16, both32, ucs2};
use super::{MAX_LABEL, SECTOR};

/// Writes both descriptors and their end.
pub(super) fn descriptors(
    image: &mut [u8],
    label: &str,
    sectors: u32,
    plain: &Directories,
    joliet: &Directories,
) {
    let primary = descriptor(1, label.as_bytes().to_vec(), b' ', sectors, plain);
    // Half as many characters fit.
    let short: String = label.chars().take(MAX_LABEL / 2).collect();
    let mut second = descriptor(2, ucs2(&short), 0, sectors, joliet);
    // The third of the character sets that Joliet knows: all of UCS-2.
    second[88..91].copy_from_slice(b"%/E");
    let mut end = vec![0; SECTOR];
    end[..7].copy_from_slice(b"\xffCD001\x01");
    for (at, sector) in [primary, second, end].into_iter().enumerate() {
        let start = (16 + at) * SECTOR;
        image[start..start + SECTOR].copy_from_slice(&sector);
    }
}

/// `blank` fills texts: a space, or the upper half of one in UCS-2.
fn descriptor(kind: u8, label: Vec<u8>, blank: u8, sectors: u32, tree: &Directories) -> Vec<u8> {
    let wide = blank == 0;
    let text = |value: Vec<u8>, length: usize| -> Vec<u8> {
        let mut bytes = value;
        bytes.truncate(length);
        while bytes.len() < length {
            // An odd byte at the end of a wide text stays zero.
            let odd = wide && bytes.len().is_multiple_of(2);
            bytes.push(if odd { 0 } else { b' ' });
        }
        if wide && length % 2 == 1 {
            bytes[length - 1] = 0;
        }
        bytes
    };
    let mut bytes = vec![kind];
    bytes.extend(b"CD001\x01\x00");
    bytes.extend(text(Vec::new(), 32));
    bytes.extend(text(label, 32));
    bytes.extend([0; 8]);
    bytes.extend(both32(sectors));
    bytes.extend([0; 32]);
    bytes.extend(both16(1));
    bytes.extend(both16(1));
    bytes.extend(both16(2048));
    bytes.extend(both32(tree.table_length()));
    let [little, big] = tree.tables();
    bytes.extend(little.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(big.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(tree.root());
    // Set, publisher, preparer, application: 128 bytes each; three names of files: 37 bytes each.
    for length in [128, 128, 128, 128, 37, 37, 37] {
        bytes.extend(text(Vec::new(), length));
    }
    for _ in 0..4 {
        bytes.extend(NO_MOMENT);
    }
    bytes.push(1);
    bytes.resize(SECTOR, 0);
    bytes
}
