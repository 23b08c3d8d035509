//! The Internet checksum, computed as a whole (RFC 1071) and amended when a few words change (RFC 1624).

use std::net::Ipv4Addr;

/// The checksum of `data`, as it is stored in a header.
pub fn of(data: &[u8]) -> u16 {
    !smoltcp::wire::checksum::data(data)
}

/// The checksum of a TCP, UDP or other segment under its IPv4 pseudo header.
pub fn of_segment(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, segment: &[u8]) -> u16 {
    // A segment fits into a packet of 65,535 bytes, so its length fits as well.
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    let mut sum = Sum(0);
    sum.add_address(src);
    sum.add_address(dst);
    sum.add(u16::from(protocol));
    sum.add_long(length);
    sum.add(smoltcp::wire::checksum::data(segment));
    !sum.folded()
}

/// A change of words under a checksum, collected and then applied.
#[derive(Clone, Copy, Default)]
pub struct Amendment(Sum);

impl Amendment {
    pub fn word(&mut self, before: u16, after: u16) {
        self.0.add(!before);
        self.0.add(after);
    }

    pub fn address(&mut self, before: Ipv4Addr, after: Ipv4Addr) {
        let (before, after) = (u32::from(before), u32::from(after));
        self.word(high(before), high(after));
        self.word(low(before), low(after));
    }

    /// The checksum after the change.
    pub fn apply(self, checksum: u16) -> u16 {
        let mut sum = self.0;
        sum.add(!checksum);
        !sum.folded()
    }
}

#[derive(Clone, Copy, Default)]
struct Sum(u32);

impl Sum {
    fn add(&mut self, word: u16) {
        // Sixteen words at most are added between foldings, so this cannot overflow.
        self.0 += u32::from(word);
    }

    fn add_long(&mut self, long: u32) {
        self.add(high(long));
        self.add(low(long));
    }

    fn add_address(&mut self, address: Ipv4Addr) {
        self.add_long(u32::from(address));
    }

    fn folded(self) -> u16 {
        let once = (self.0 & 0xffff) + (self.0 >> 16);
        let twice = (once & 0xffff) + (once >> 16);
        low(twice)
    }
}

const fn high(long: u32) -> u16 {
    (long >> 16) as u16
}

const fn low(long: u32) -> u16 {
    (long & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn header_of_rfc_1071() {
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    proptest! {
        #[test]
        fn amending_equals_computing_again(mut data in prop::collection::vec(any::<u8>(), 8..64), at in 0_usize..4, new in any::<u32>()) {
            data.truncate(data.len() / 2 * 2);
            let before = of(&data);
            let place = at * 2 % (data.len() - 3) / 2 * 2;
            let old = u32::from_be_bytes([data[place], data[place + 1], data[place + 2], data[place + 3]]);
            let mut change = Amendment::default();
            change.address(Ipv4Addr::from(old), Ipv4Addr::from(new));
            data[place..place + 4].copy_from_slice(&new.to_be_bytes());
            let (amended, computed) = (change.apply(before), of(&data));
            // Both zeros of one's complement mean the same sum.
            prop_assert!(amended == computed || (amended ^ computed) == 0xffff && (amended == 0 || computed == 0));
        }
    }
}
