//! Numbers and moments as ISO 9660 writes them.

/// Both byte orders, 16 bits.
pub(super) fn both16(value: u16) -> [u8; 4] {
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    [little[0], little[1], big[0], big[1]]
}

/// Both byte orders, 32 bits.
pub(super) fn both32(value: u32) -> [u8; 8] {
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    [
        little[0], little[1], little[2], little[3], big[0], big[1], big[2], big[3],
    ]
}

/// The moment in every record: the first of 2000, so that nothing depends on the clock.
pub(super) const MOMENT: [u8; 7] = [100, 1, 1, 0, 0, 0, 0];

/// No moment, in a descriptor.
pub(super) const NO_MOMENT: [u8; 17] = *b"0000000000000000\0";

/// UCS-2, big-endian. What it does not have becomes an underscore.
pub(super) fn ucs2(text: &str) -> Vec<u8> {
    let units = text
        .chars()
        .map(|it| u16::try_from(u32::from(it)).unwrap_or(u16::from(b'_')));
    units.flat_map(u16::to_be_bytes).collect()
}
