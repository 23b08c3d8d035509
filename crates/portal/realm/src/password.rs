//! What a password must be like. Length is what counts; composition rules make people write passwords down.

/// The longest that is looked at: a longer one would only be work for us.
pub const MAX: usize = 1024;

/// Why a password is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeakPassword {
    /// Too few characters.
    #[error("the password must have at least {0} characters")]
    Short(usize),
    /// Too many bytes.
    #[error("the password must not have more than {MAX} bytes")]
    Long,
    /// It contains the user's name, or is one character over and over.
    #[error("the password is too easy to guess: it is the user's name, or has too few different characters")]
    Simple,
}

/// Judges a new password.
pub fn judge(password: &str, user: &str, min: usize) -> Result<(), WeakPassword> {
    if password.len() > MAX {
        return Err(WeakPassword::Long);
    }
    if password.chars().count() < min {
        return Err(WeakPassword::Short(min));
    }
    let mut different: Vec<char> = password.chars().collect();
    different.sort_unstable();
    different.dedup();
    let is_name = !user.is_empty()
        && password
            .to_lowercase()
            .replace(&user.to_lowercase(), "")
            .chars()
            .count()
            < 4;
    if different.len() < 5 || is_name {
        return Err(WeakPassword::Simple);
    }
    Ok(())
}

/// A password from random bytes, easy to read and to type: five groups of four letters and digits, some 98 bits.
pub fn generate(random: &[u8; 32]) -> String {
    // Without letters and digits that look alike; 32 of them, so that each takes five bits and none is likelier.
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters = random
        .iter()
        .take(20)
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]));
    let mut password = String::with_capacity(24);
    for (place, letter) in letters.enumerate() {
        if place > 0 && place % 4 == 0 {
            password.push('-');
        }
        password.push(letter);
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_judged() {
        let long = "x".repeat(MAX + 1);
        for (password, expected) in [
            ("correct horse battery", Ok(())),
            ("längere wörter", Ok(())),
            ("short", Err(WeakPassword::Short(12))),
            ("", Err(WeakPassword::Short(12))),
            (long.as_str(), Err(WeakPassword::Long)),
            ("aaaaaaaaaaaaaaaa", Err(WeakPassword::Simple)),
            ("alicealicealice", Err(WeakPassword::Simple)),
            ("AliceAlice123", Err(WeakPassword::Simple)),
        ] {
            assert_eq!(judge(password, "alice", 12), expected, "{password:.20}");
        }
    }

    #[test]
    fn a_made_password_passes() {
        let mut random = [0; 32];
        for (place, byte) in random.iter_mut().enumerate() {
            *byte = u8::try_from(place * 7).unwrap();
        }
        let password = generate(&random);
        assert_eq!(password.len(), 24);
        assert_eq!(judge(&password, "admin", 12), Ok(()));
    }
}
