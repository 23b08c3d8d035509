//! One-time codes by time (RFC 6238): HMAC-SHA-1, six digits, thirty seconds, as every authenticator app has them.

use ring::hmac;

/// Seconds of a step.
const STEP: i64 = 30;
/// Steps before and after that are taken: clocks differ.
const WINDOW: i64 = 1;
/// Bytes of a seed.
pub const SEED: usize = 20;

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A seed as apps are given it.
pub fn encode(seed: &[u8]) -> String {
    let mut out = String::new();
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in seed {
        bits = (bits << 8) | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            out.push(char::from(BASE32[(bits >> held) as usize & 31]));
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        out.push(char::from(BASE32[(bits << (5 - held)) as usize & 31]));
    }
    out
}

/// The bytes of a seed; none if it is not base32.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0u32, 0u32);
    for letter in text.bytes().filter(|b| *b != b'=' && *b != b' ') {
        let value = BASE32.iter().position(|it| *it == letter.to_ascii_uppercase())?;
        bits = (bits << 5) | u32::try_from(value).ok()?;
        held += 5;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 255).ok()?);
            bits &= (1 << held) - 1;
        }
    }
    (!out.is_empty()).then_some(out)
}

fn code(seed: &[u8], step: u64) -> u32 {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, seed);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[tag.len() - 1] & 15);
    let word = [tag[at] & 0x7f, tag[at + 1], tag[at + 2], tag[at + 3]];
    u32::from_be_bytes(word) % 1_000_000
}

/// The step that a code is of, if it is right now and was not used: a code counts once, and so does an earlier one.
pub fn check(seed: &[u8], offered: &str, now: i64, last_step: Option<i64>) -> Option<i64> {
    let offered: String = offered.chars().filter(|c| !c.is_whitespace()).collect();
    if offered.len() != 6 {
        return None;
    }
    let current = now.div_euclid(STEP);
    let mut found = None;
    // All are computed, whichever is right.
    for step in current - WINDOW..=current + WINDOW {
        let right = format!("{:06}", code(seed, u64::try_from(step).unwrap_or(0)));
        if crate::secret::is_equal(right.as_bytes(), offered.as_bytes()) {
            found = Some(step);
        }
    }
    found.filter(|step| last_step.is_none_or(|last| *step > last))
}

/// The step that a code is of, if it shows that an app has a seed which was only offered; none for a seed that we would not have made.
pub fn enrolled(seed: &str, offered: &str, now: i64) -> Option<i64> {
    let seed = decode(seed).filter(|seed| seed.len() == SEED)?;
    check(&seed, offered, now, None)
}

/// The address that an app reads from a picture.
pub fn uri(realm: &str, user: &str, seed: &str) -> String {
    format!(
        "otpauth://totp/Fairway:{realm}%2F{user}?secret={seed}&issuer=Fairway&algorithm=SHA1&digits=6&period=30"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last six of RFC 6238's eight digits, appendix B.
    #[test]
    fn codes_are_those_of_the_standard() {
        let seed = b"12345678901234567890";
        for (now, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(check(seed, expected, now, None), Some(now / 30), "{now}");
        }
    }

    #[test]
    fn a_code_is_good_for_a_while_and_once() {
        let seed = b"12345678901234567890";
        for (offered, now, last, expected) in [
            ("287082", 59 + 30, None, Some(1)),
            ("287082", 59 - 30, None, Some(1)),
            ("287 082", 59, None, Some(1)),
            ("287082", 59 + 60, None, None),
            ("287082", 59, Some(1), None),
            ("287082", 59, Some(0), Some(1)),
            ("287083", 59, None, None),
            ("", 59, None, None),
            ("0287082", 59, None, None),
            ("28708ä", 59, None, None),
        ] {
            assert_eq!(
                check(seed, offered, now, last),
                expected,
                "{offered} at {now} after {last:?}"
            );
        }
    }

    #[test]
    fn an_app_shows_that_it_has_a_seed() {
        let seed = encode(b"12345678901234567890");
        for (seed, offered, expected) in [
            (seed.as_str(), "287082", Some(1)),
            (&seed, "287083", None),
            (&seed, "", None),
            // A short one could be guessed.
            ("MZXW6", "287082", None),
            ("", "287082", None),
            ("0189", "287082", None),
        ] {
            assert_eq!(enrolled(seed, offered, 59), expected, "{seed} {offered}");
        }
    }

    #[test]
    fn seeds_are_base32() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(decode("mzxw 6==="), Some(b"foo".to_vec()));
        assert_eq!(decode("0189"), None);
        assert_eq!(decode(""), None);
    }
}
