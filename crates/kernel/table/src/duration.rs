//! Ages as kubectl shows them: two or three significant figures.

/// A duration in seconds, for people. Clocks differ a little, so one second into the future is now; more than that is
/// not a duration.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, large_unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, 'm', s % MINUTE, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, 'h', s % HOUR / MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, 'd', s % DAY / HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, 'y', s % YEAR / DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

/// The Unix time of a timestamp.
pub(crate) fn unix_seconds(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_second())
}

#[cfg(test)]
mod tests {
    use super::{human_duration, unix_seconds};

    #[test]
    fn durations_have_two_or_three_figures() {
        let (m, h, d, y) = (60, 3600, 86_400, 365 * 86_400);
        for (seconds, want) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (1, "1s"),
            (70, "70s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (9 * m + 59, "9m59s"),
            (10 * m + 1, "10m"),
            (3 * h - 1, "179m"),
            (3 * h, "3h"),
            (3 * h + m, "3h1m"),
            (8 * h, "8h"),
            (47 * h + 59 * m, "47h"),
            (2 * d, "2d"),
            (2 * d + h, "2d1h"),
            (8 * d - 1, "7d23h"),
            (8 * d + 5 * h, "8d"),
            (2 * y - 1, "729d"),
            (2 * y, "2y"),
            (2 * y + d, "2y1d"),
            (8 * y - 1, "7y364d"),
            (8 * y + 200 * d, "8y"),
            (i64::MIN, "<invalid>"),
        ] {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn timestamps_are_read() {
        assert_eq!(unix_seconds("1970-01-01T00:01:00Z"), Some(60));
        assert_eq!(unix_seconds("1970-01-01T01:01:00.123456+01:00"), Some(60));
        assert_eq!(unix_seconds("yesterday"), None);
    }
}
