//! What a certificate may be used for, from the words of the API to the bits of the certificate.

use crate::der;

/// Bits of the key usage extension, from the highest bit of its first byte on.
const KEY_USAGES: &[(&str, u16)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Extended usages with the content of their object identifiers, in the order in which upstream writes them.
const EXTENDED: &[(&str, &[u8])] = &[
    ("any", &[0x55, 0x1d, 0x25, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// A usage that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized usage values: [{0:?}]")]
pub struct UnknownUsage(String);

/// The usages of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usages {
    bits: u16,
    extended: Vec<&'static [u8]>,
}

impl Usages {
    /// From the words of `spec.usages`.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownUsage> {
        let mut usages = Self::default();
        let mut wanted = Vec::new();
        for word in words {
            if let Some((_, bit)) = KEY_USAGES.iter().find(|(name, _)| *name == word) {
                usages.bits |= 0x8000 >> bit;
            } else if let Some(place) = EXTENDED.iter().position(|(name, _)| *name == word) {
                wanted.push(place);
            } else {
                return Err(UnknownUsage(word.to_owned()));
            }
        }
        wanted.sort_unstable();
        for place in wanted {
            let id = EXTENDED[place].1;
            if !usages.extended.contains(&id) {
                usages.extended.push(id);
            }
        }
        Ok(usages)
    }

    /// The value of the key usage extension, if there is any.
    pub(crate) fn key_usage(&self) -> Option<Vec<u8>> {
        let [first, second] = self.bits.to_be_bytes();
        let (bytes, last): (&[u8], u8) = match (first, second) {
            (0, 0) => return None,
            (_, 0) => (&[first], first),
            _ => (&[first, second], second),
        };
        Some(der::named_bits(
            bytes,
            u8::try_from(last.trailing_zeros()).unwrap_or(0),
        ))
    }

    /// The value of the extended key usage extension, if there is any.
    pub(crate) fn extended(&self) -> Option<Vec<u8>> {
        let ids: Vec<Vec<u8>> = self.extended.iter().map(|id| der::object(id)).collect();
        (!ids.is_empty()).then(|| der::group(der::SEQUENCE, &ids))
    }
}

#[cfg(test)]
mod tests {
    use super::Usages;

    #[test]
    fn words_become_bits() {
        for (words, key_usage) in [
            (vec!["digital signature"], Some(vec![3, 2, 7, 0x80])),
            (
                vec!["digital signature", "key encipherment", "client auth"],
                Some(vec![3, 2, 5, 0xa0]),
            ),
            (vec!["decipher only"], Some(vec![3, 3, 7, 0, 0x80])),
            (vec!["client auth"], None),
        ] {
            assert_eq!(
                Usages::parse(words.iter().copied()).unwrap().key_usage(),
                key_usage,
                "{words:?}"
            );
        }
        let twice = Usages::parse(["s/mime", "email protection", "server auth"]).unwrap();
        assert_eq!(twice.extended().unwrap().len(), 2 + 2 * 10);
        assert_eq!(
            Usages::parse(["flying"]).unwrap_err().to_string(),
            "unrecognized usage values: [\"flying\"]"
        );
    }
}
