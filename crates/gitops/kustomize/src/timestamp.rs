//! Plain scalars that look like a time, which the original reads as one and writes back in full.

/// The time in the form in which Go writes it; none if the text is no time.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (date, rest) = split_date(text)?;
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| format!("{date}T00:00:00Z"));
    };
    let zone_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone_at);
    let (clock, fraction) = time.split_once(['.', ',']).unwrap_or((time, ""));
    let mut parts = clock.split(':').map(|part| part.parse::<u32>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let fraction = fraction.trim_end_matches('0');
    let fraction = match fraction.is_empty() {
        true => String::new(),
        // Go's clocks count nanoseconds.
        false => format!(".{}", &fraction[..fraction.len().min(9)]),
    };
    let zone = match zone {
        "" | "Z" | "+00:00" | "-00:00" => "Z",
        other => other,
    };
    Some(format!(
        "{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"
    ))
}

/// The date with two digits for month and day, and what follows it.
fn split_date(text: &str) -> Option<(String, &str)> {
    let (year, rest) = text.split_once('-')?;
    let (month, rest) = rest.split_once('-')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (day, rest) = rest.split_at(digits);
    let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
    (year.len() == 4).then(|| (format!("{year}-{month:02}-{day:02}"), rest))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn times_are_written_in_full() {
        for (written, full) in [
            ("2020-01-01", "2020-01-01T00:00:00Z"),
            ("2020-1-2", "2020-01-02T00:00:00Z"),
            ("2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43.1-05:00"),
            ("2001-12-15 2:59:43.10", "2001-12-15T02:59:43.1Z"),
            ("2001-12-15T02:59:43Z", "2001-12-15T02:59:43Z"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(full));
        }
        assert_eq!(canonical("not-a-time"), None);
    }
}
