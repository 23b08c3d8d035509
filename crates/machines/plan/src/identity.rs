//! What a machine is called by hardware: MAC addresses and the UUID of its firmware.
//!
//! Both are computed from names, so that a machine that is stopped, moved or restored elsewhere stays who it was.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use std::fmt::Write as _;

/// The name space in which KubeVirt derives the UUIDs of machines from their names.
const FIRMWARE_NAMESPACE: [u8; 16] = [
    0x6a, 0x1a, 0x24, 0xa1, 0x40, 0x61, 0x46, 0x07, 0x8b, 0xf4, 0xa3, 0x96, 0x3d, 0x0c, 0x58, 0x95,
];

/// The UUID that a machine's firmware has if its author gave none: that of upstream.
pub fn firmware_uuid(name: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(FIRMWARE_NAMESPACE);
    hash.update(name.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    // Version 5 (a name hashed), and the variant that everybody uses.
    bytes[6] = (bytes[6] & 0x0f) | 0x50;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Whose network card an address is for.
#[derive(Clone, Copy, Debug)]
pub struct CardOwner<'n> {
    /// The workspace's identity: addresses are unique across workspaces.
    pub workspace: &'n str,
    /// Namespace of the machine.
    pub namespace: &'n str,
    /// Its name.
    pub machine: &'n str,
    /// The card.
    pub interface: &'n str,
    /// Counts up when an address turned out to be taken. With 40 bits of choice that is rare, but it must not be fatal.
    pub attempt: u32,
}

/// The address of a card whose author gave none.
pub fn mac_address(owner: &CardOwner<'_>) -> String {
    let mut attempt = owner.attempt;
    loop {
        let mut hash = Sha256::new();
        for part in [owner.workspace, owner.namespace, owner.machine, owner.interface] {
            // Lengths keep `a`+`bc` and `ab`+`c` apart.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(attempt.to_be_bytes());
        let digest = hash.finalize();
        // Locally administered, for one receiver; the rest is the hash.
        let address = [0x02, digest[0], digest[1], digest[2], digest[3], digest[4]];
        if !is_reserved(&address) {
            let parts: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
            return parts.join(":");
        }
        attempt = attempt.wrapping_add(1);
    }
}

/// What upstream gives to the bridge behind an address translation.
fn is_reserved(address: &[u8; 6]) -> bool {
    *address == [2, 0, 0, 0, 0, 0]
}

/// Whether a written address is the reserved one.
pub fn is_reserved_mac(text: &str) -> bool {
    parse_mac(text).is_some_and(|bytes| matches!(<[u8; 6]>::try_from(bytes), Ok(it) if is_reserved(&it)))
}

/// Reads an address as Go's `net.ParseMAC` does: 6, 8 or 20 bytes, by colons, hyphens or dots.
pub fn parse_mac(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = if text.contains('.') {
        let groups: Vec<&str> = text.split('.').collect();
        let read = |group: &&str| -> Option<[u8; 2]> {
            let hex = group.len() == 4 && group.bytes().all(|it| it.is_ascii_hexdigit());
            hex.then(|| u16::from_str_radix(group, 16).ok().map(u16::to_be_bytes))?
        };
        let pairs: Option<Vec<[u8; 2]>> = groups.iter().map(read).collect();
        pairs.map(|it| it.concat())
    } else {
        let by = if text.contains(':') { ':' } else { '-' };
        let read = |group: &str| -> Option<u8> {
            let hex = group.len() == 2 && group.bytes().all(|it| it.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(group, 16).ok())?
        };
        text.split(by).map(read).collect()
    };
    bytes.filter(|it| matches!(it.len(), 6 | 8 | 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_upstreams() {
        // `uuid.NewSHA1(6a1a24a1-4061-4607-8bf4-a3963d0c5895, "testvm")`, computed by another implementation.
        assert_eq!(firmware_uuid("testvm"), "5a9fc181-957e-5c32-9e5a-2de5e9673531");
    }

    #[test]
    fn addresses_are_stable_and_apart() {
        let owner = CardOwner {
            workspace: "root",
            namespace: "user-vms",
            machine: "web",
            interface: "default",
            attempt: 0,
        };
        let address = mac_address(&owner);
        assert_eq!(address, mac_address(&owner));
        assert!(address.starts_with("02:"), "{address}");
        let others = [
            CardOwner {
                workspace: "abc",
                ..owner
            },
            CardOwner {
                namespace: "user-v",
                machine: "msweb",
                ..owner
            },
            CardOwner {
                interface: "second",
                ..owner
            },
            CardOwner { attempt: 1, ..owner },
        ];
        for other in others {
            assert_ne!(address, mac_address(&other), "{other:?}");
        }
    }

    #[test]
    fn written_addresses() {
        for (text, bytes) in [
            ("02:00:00:00:00:01", Some(6)),
            ("02-00-00-00-00-01", Some(6)),
            ("0200.0000.0001", Some(6)),
            ("02:00:00:00:00:00:00:01", Some(8)),
            ("02:00:00:00:00", None),
            ("2:0:0:0:0:1", None),
            ("zz:00:00:00:00:01", None),
            ("+1:00:00:00:00:01", None),
            ("", None),
        ] {
            assert_eq!(parse_mac(text).map(|it| it.len()), bytes, "{text:?}");
        }
        assert!(is_reserved_mac("02:00:00:00:00:00"));
        assert!(!is_reserved_mac("02:00:00:00:00:01"));
    }
}
