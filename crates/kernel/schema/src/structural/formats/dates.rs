//! Dates, times of day and durations.

use fairway_text_gotext::duration;

/// `2006-01-02`, with a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let b = text.as_bytes();
    if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| {
        b[range].iter().try_fold(0_u32, |n, d| {
            d.is_ascii_digit().then(|| n * 10 + u32::from(d - b'0'))
        })
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339, with a lower-case `t` or `z` allowed. What follows a second `t` is not looked at, as upstream.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `19:30:20.123z` or with an offset.
fn is_time(text: &str) -> bool {
    let b = text.as_bytes();
    if b.len() < 9 || b[2] != b':' || b[5] != b':' {
        return false;
    }
    let two =
        |at: usize, max: &[u8]| b[at].is_ascii_digit() && b[at + 1].is_ascii_digit() && &b[at..at + 2] <= max;
    if !two(0, b"23") || !two(3, b"59") || !two(6, b"59") {
        return false;
    }
    let rest = &text[8..];
    if is_offset(rest) {
        return true;
    }
    // A fraction begins with any one character, then digits.
    let mut chars = rest.chars();
    let Some(_) = chars.next() else { return false };
    let digits = chars.as_str().bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && is_offset(&chars.as_str()[digits..])
}

fn is_offset(text: &str) -> bool {
    let b = text.as_bytes();
    text == "z"
        || (b.len() == 6
            && matches!(b[0], b'+' | b'-')
            && b[3] == b':'
            && [1, 2, 4, 5].iter().all(|&i| b[i].is_ascii_digit()))
}

/// Go's durations (`1h30m`), or words such as `3 days` anywhere in the text.
pub(super) fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || has_worded_duration(text).unwrap_or(false)
}

/// Units with their spellings; the last spelling also stands for anything that begins with it (`minutes`).
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "\u{b5}s", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// `None`: a number is too large.
fn has_worded_duration(text: &str) -> Option<bool> {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let spaceless = tail.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let length = spaceless
            .find(|c: char| !c.is_ascii_alphabetic() && c != '\u{b5}')
            .unwrap_or(spaceless.len());
        let unit = spaceless[..length].to_lowercase();
        rest = &spaceless[length..];
        if unit.is_empty() {
            continue;
        }
        number.parse::<i64>().ok()?;
        found |= UNITS.iter().any(|spellings| {
            spellings.iter().any(|s| *s == unit) || spellings.last().is_some_and(|s| unit.starts_with(s))
        });
    }
    Some(found)
}
