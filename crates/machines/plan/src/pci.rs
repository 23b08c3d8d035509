//! Addresses of devices, as people write them.

use serde::{Deserialize, Serialize};

/// `DDDD:BB:SS.F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PciAddress {
    /// Domain.
    pub domain: u16,
    /// Bus.
    pub bus: u8,
    /// Slot, below 32.
    pub slot: u8,
    /// Function, below 8.
    pub function: u8,
}

impl PciAddress {
    /// Reads an address in the only form that upstream takes.
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (slot, function) = rest.split_once('.')?;
        let hex = |part: &str, length: usize| {
            let plain = part.len() == length && part.bytes().all(|it| it.is_ascii_hexdigit());
            plain.then(|| u16::from_str_radix(part, 16).ok())?
        };
        Some(Self {
            domain: hex(domain, 4)?,
            bus: u8::try_from(hex(bus, 2)?).ok()?,
            slot: u8::try_from(hex(slot, 2)?).ok().filter(|it| *it < 32)?,
            function: u8::try_from(hex(function, 1)?).ok().filter(|it| *it < 8)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_form() {
        let address = PciAddress::parse("0000:81:1f.7");
        assert_eq!(
            address,
            Some(PciAddress {
                domain: 0,
                bus: 0x81,
                slot: 0x1f,
                function: 7
            })
        );
        for wrong in [
            "",
            "0:81:1f.7",
            "0000:81:20.0",
            "0000:81:1f.8",
            "0000:81:1f",
            "0000-81-1f.7",
            "0000:+1:1f.7",
        ] {
            assert_eq!(PciAddress::parse(wrong), None, "{wrong:?}");
        }
    }
}
