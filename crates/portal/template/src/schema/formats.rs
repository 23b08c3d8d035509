//! Formats of texts that forms ask for. One that is not known is not judged, as ajv without strictness does.

/// Whether a text has a format; nothing if the format is not known.
pub(super) fn matches(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "email" => is_email(text),
        "uri" | "url" => is_uri(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "date" => is_date(text),
        "uuid" => is_uuid(text),
        "regex" => super::pattern(text).is_ok(),
        _ => return None,
    })
}

fn is_email(text: &str) -> bool {
    let is_local = |local: &str| {
        (1..=64).contains(&local.len())
            && local
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c))
    };
    text.rsplit_once('@')
        .is_some_and(|(local, host)| is_local(local) && is_hostname(host))
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !rest.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
    })
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let number =
        |part: &str, length: usize| (part.len() == length).then(|| part.parse::<u32>().ok()).flatten();
    match (number(year, 4), number(month, 2), number(day, 2)) {
        (Some(year), Some(month @ 1..=12), Some(day @ 1..=31)) => {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let longest = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day <= longest
        }
        _ => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == 5
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit()))
}
