//! Where the kernel gets the time and its randomness, so that the rest need not know.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// The wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Now, RFC 3339 in UTC, whole seconds: the form of Kubernetes' timestamps.
    pub fn rfc3339(self) -> String {
        rfc3339(self.unix())
    }

    /// Now, with microseconds, as audit events and leases have it.
    pub fn rfc3339_micros(self) -> String {
        let now = jiff::Timestamp::now();
        let mut text = String::with_capacity(27);
        push_date_time(&mut text, now);
        text.push('.');
        push_digits(&mut text, now.subsec_microsecond().unsigned_abs(), 100_000);
        text.push('Z');
        text
    }

    /// Seconds since 1970.
    pub fn unix(self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}

/// A moment as Kubernetes writes it.
pub fn rfc3339(unix: i64) -> String {
    let Ok(moment) = jiff::Timestamp::from_second(unix) else {
        return String::new();
    };
    let mut text = String::with_capacity(20);
    push_date_time(&mut text, moment);
    text.push('Z');
    text
}

/// `2026-01-02T03:04:05`. Every request is stamped three times, and a formatter that interprets its pattern costs more
/// than the rest of the stamp.
fn push_date_time(text: &mut String, moment: jiff::Timestamp) {
    let at = jiff::tz::Offset::UTC.to_datetime(moment);
    let parts = [
        (u32::from(at.year().unsigned_abs()), 1_000, '-'),
        (u32::from(at.month().unsigned_abs()), 10, '-'),
        (u32::from(at.day().unsigned_abs()), 10, 'T'),
        (u32::from(at.hour().unsigned_abs()), 10, ':'),
        (u32::from(at.minute().unsigned_abs()), 10, ':'),
    ];
    for (number, highest, then) in parts {
        push_digits(text, number, highest);
        text.push(then);
    }
    push_digits(text, u32::from(at.second().unsigned_abs()), 10);
}

/// The digits of a number from the place `highest` (a power of ten) downwards.
fn push_digits(text: &mut String, number: u32, highest: u32) {
    let mut place = highest;
    while place > 0 {
        text.push(char::from(b'0' + (number / place % 10) as u8));
        place /= 10;
    }
}

/// The operating system's randomness.
pub struct Random {
    system: SystemRandom,
    /// Drawn ahead for ids, of which every request needs one or two: a system call each would be a tenth of a GET.
    drawn: Mutex<Drawn>,
}

struct Drawn {
    bytes: [u8; 2048],
    used: usize,
}

/// Letters of generated names: no vowels and nothing that looks like something else, so that no words come out.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const HEX: &[u8; 16] = b"0123456789abcdef";

impl Default for Random {
    fn default() -> Self {
        Self {
            system: SystemRandom::new(),
            drawn: Mutex::new(Drawn {
                bytes: [0; 2048],
                used: 2048,
            }),
        }
    }
}

impl Random {
    /// Fills a buffer. The operating system's generator does not fail once it has worked.
    pub fn fill(&self, buffer: &mut [u8]) {
        if self.system.fill(buffer).is_err() {
            tracing::error!("the operating system gives no randomness");
        }
    }

    fn u64(&self) -> u64 {
        u64::from_le_bytes(self.draw())
    }

    /// Bytes that were drawn ahead and are given out once. For ids and chance; keys are made by [`Random::fill`].
    fn draw<const N: usize>(&self) -> [u8; N] {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.used + N > drawn.bytes.len() {
            self.fill(&mut drawn.bytes);
            drawn.used = 0;
        }
        let mut bytes = [0; N];
        let from = drawn.used;
        bytes.copy_from_slice(&drawn.bytes[from..from + N]);
        drawn.used += N;
        bytes
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.u64() % bound }
    }

    /// A random UUID (version 4).
    pub fn uuid(&self) -> String {
        let mut b: [u8; 16] = self.draw();
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
        self.draw::<5>()
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
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_794_787_200, "2026-11-16T00:00:00Z"),
        ];
        for (unix, text) in cases {
            assert_eq!(rfc3339(unix), text);
        }
        let micros = Clock.rfc3339_micros();
        assert!(
            micros.len() == 27 && micros.parse::<jiff::Timestamp>().is_ok(),
            "{micros}"
        );
    }
}
