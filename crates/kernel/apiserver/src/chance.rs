//! Where the kernel gets the time and its randomness, so that the rest need not know.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// The wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Now, RFC 3339 in UTC, whole seconds: the form of Kubernetes' timestamps.
    pub fn rfc3339(self) -> String {
        let now = jiff::Timestamp::now();
        rfc3339(now.as_second())
    }

    /// Now, with microseconds, as audit events and leases have it.
    pub fn rfc3339_micros(self) -> String {
        jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            .to_string()
    }

    /// Seconds since 1970.
    pub fn unix(self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}

/// A moment as Kubernetes writes it.
pub fn rfc3339(unix: i64) -> String {
    jiff::Timestamp::from_second(unix)
        .map(|t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// The operating system's randomness.
#[derive(Debug)]
pub struct Random(SystemRandom);

/// Letters of generated names: no vowels and nothing that looks like something else, so that no words come out.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const HEX: &[u8; 16] = b"0123456789abcdef";

impl Default for Random {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Random {
    /// Fills a buffer. The operating system's generator does not fail once it has worked.
    pub fn fill(&self, buffer: &mut [u8]) {
        if self.0.fill(buffer).is_err() {
            tracing::error!("the operating system gives no randomness");
        }
    }

    fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.u64() % bound }
    }

    /// A random UUID (version 4).
    pub fn uuid(&self) -> String {
        let mut b = [0; 16];
        self.fill(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (i, byte) in b.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 0xf)]));
        }
        text
    }

    /// Five letters for `generateName`.
    pub fn name_suffix(&self) -> String {
        let mut bytes = [0; 5];
        self.fill(&mut bytes);
        bytes
            .iter()
            .map(|b| char::from(NAME_LETTERS[*b as usize % NAME_LETTERS.len()]))
            .collect()
    }

    /// A random time up to `most`.
    pub fn spread(&self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_and_suffixes_have_their_form() {
        let random = Random::default();
        let uuid = random.uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert_eq!(random.name_suffix().len(), 5);
        assert_ne!(random.uuid(), uuid);
    }

    #[test]
    fn times_are_written_as_kubernetes_writes_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
    }
}
