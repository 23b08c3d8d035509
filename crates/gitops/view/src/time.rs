//! Moments and spans in the words of Go.

use jiff::Timestamp;

/// A moment of the API as Go prints it, `2026-11-16 10:00:00 +0000 UTC`; nothing for none.
pub fn moment(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// A span of whole seconds as Go prints it: `1h2m3s`.
pub fn span(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{rest}s"),
        (0, _) => format!("{sign}{minutes}m{rest}s"),
        _ => format!("{sign}{hours}h{minutes}m{rest}s"),
    }
}

/// How long ago something was, in the one or two units that kubectl shows.
pub fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = (now.as_second() - since.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        ..120 => format!("{seconds}s"),
        ..600 if seconds % 60 > 0 => format!("{minutes}m{}s", seconds % 60),
        ..10800 => format!("{minutes}m"),
        ..28800 if minutes % 60 > 0 => format!("{hours}h{}m", minutes % 60),
        ..172_800 => format!("{hours}h"),
        ..691_200 if hours % 24 > 0 => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_go() {
        assert_eq!(moment("2026-11-16T10:00:05Z"), "2026-11-16 10:00:05 +0000 UTC");
        assert_eq!(
            moment("2026-11-16T12:00:05+02:00"),
            "2026-11-16 10:00:05 +0000 UTC"
        );
        assert_eq!(moment(""), "");
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m1s"),
            (3600, "1h0m0s"),
            (-5, "-5s"),
        ] {
            assert_eq!(span(seconds), text);
        }
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        for (since, text) in [
            ("2026-11-16T09:59:00Z", "60s"),
            ("2026-11-16T09:55:30Z", "4m30s"),
            ("2026-11-16T08:00:00Z", "120m"),
            ("2026-11-16T04:30:00Z", "5h30m"),
            ("2026-11-13T09:00:00Z", "3d1h"),
            ("2026-10-16T09:00:00Z", "31d"),
            ("odd", "<unknown>"),
        ] {
            assert_eq!(age(since, now), text, "{since}");
        }
    }
}
