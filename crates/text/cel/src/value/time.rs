//! Timestamps and durations: the range, the formats and the calendar that CEL gives them.
//!
//! Timestamps are kept as seconds because CEL's range ends after the last instant that `jiff` can hold.

use std::fmt;

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::error::Error;

const NANOS: i64 = 1_000_000_000;
/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

/// A point in time between the years 1 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// The calendar's view of a timestamp in some time zone.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// Sunday is 0.
    pub(crate) day_of_week: i64,
    pub(crate) hours: i64,
    pub(crate) minutes: i64,
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// Days since 1970-01-01 of a date in the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads a number of exactly `digits` digits from the front.
fn digits(text: &mut &str, digits: usize) -> Option<i64> {
    let head = text.get(..digits)?;
    if !head.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    *text = &text[digits..];
    head.parse().ok()
}

impl Timestamp {
    /// The timestamp at a number of seconds since 1970, if CEL's range holds it.
    pub fn from_seconds(seconds: i64, nanos: u32) -> Option<Timestamp> {
        ((MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && nanos < NANOS as u32)
            .then_some(Timestamp { seconds, nanos })
    }

    /// Seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Timestamp> {
        Timestamp::read(text, false)
    }

    /// Reads what the schema format `date-time` allows beside RFC 3339: a missing offset, one without a colon.
    pub(crate) fn parse_lenient(text: &str) -> Option<Timestamp> {
        Timestamp::read(text, true)
    }

    pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
        let mut rest = text;
        let days = read_date(&mut rest)?;
        if rest.is_empty() {
            Timestamp::from_seconds(days * 86_400, 0)
        } else {
            None
        }
    }

    fn read(text: &str, lenient: bool) -> Option<Timestamp> {
        let mut rest = text;
        let days = read_date(&mut rest)?;
        rest = rest
            .strip_prefix('T')
            .or_else(|| rest.strip_prefix('t').filter(|_| lenient))?;
        let hours = digits(&mut rest, 2)?;
        rest = rest.strip_prefix(':')?;
        let minutes = digits(&mut rest, 2)?;
        rest = rest.strip_prefix(':')?;
        let seconds = digits(&mut rest, 2)?;
        if hours > 23 || minutes > 59 || seconds > 59 {
            return None;
        }
        let mut nanos = 0u32;
        if let Some(fraction) = rest.strip_prefix('.') {
            let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if count == 0 {
                return None;
            }
            for index in 0..9 {
                nanos = nanos * 10
                    + fraction
                        .as_bytes()
                        .get(index)
                        .filter(|_| index < count)
                        .map_or(0, |b| u32::from(b - b'0'));
            }
            rest = &fraction[count..];
        }
        let offset = read_offset(rest, lenient)?;
        Timestamp::from_seconds(
            days * 86_400 + hours * 3600 + minutes * 60 + seconds - offset,
            nanos,
        )
    }

    pub(crate) fn add(self, duration: Duration) -> Option<Timestamp> {
        let nanos = i64::from(self.nanos) + duration.0.rem_euclid(NANOS);
        let seconds = self
            .seconds
            .checked_add(duration.0.div_euclid(NANOS))?
            .checked_add(nanos / NANOS)?;
        Timestamp::from_seconds(seconds, (nanos % NANOS) as u32)
    }

    pub(crate) fn since(self, other: Timestamp) -> Option<Duration> {
        let seconds = i128::from(self.seconds - other.seconds) * i128::from(NANOS);
        let nanos = seconds + i128::from(self.nanos) - i128::from(other.nanos);
        i64::try_from(nanos).ok().map(Duration)
    }

    /// The calendar in a zone: UTC, an IANA name or an offset such as `+02:00`.
    pub(crate) fn civil(self, zone: Option<&str>) -> Result<Civil, Error> {
        let offset = zone.map_or(Ok(0), |zone| self.offset(zone))?;
        let local = self.seconds + offset;
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        Ok(Civil {
            year,
            month,
            day,
            day_of_year: days - days_from_civil(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
            hours: second_of_day / 3600,
            minutes: second_of_day / 60 % 60,
            seconds: second_of_day % 60,
            nanos: self.nanos,
        })
    }

    fn offset(self, zone: &str) -> Result<i64, Error> {
        if let Some((hours, minutes)) = zone.split_once(':') {
            let invalid = || Error::invalid(format!("invalid time zone offset: {zone}"));
            let hours: i64 = hours.parse().map_err(|_| invalid())?;
            let minutes: i64 = minutes.parse().map_err(|_| invalid())?;
            if hours.abs() > 24 || !(0..60).contains(&minutes) {
                return Err(invalid());
            }
            return Ok(hours * 3600
                + if zone.starts_with('-') {
                    -minutes * 60
                } else {
                    minutes * 60
                });
        }
        if matches!(zone, "" | "UTC") {
            return Ok(0);
        }
        let unknown = |_| Error::invalid(format!("unknown time zone {zone}"));
        let zone: TimeZone = TimeZoneDatabase::bundled().get(zone).map_err(unknown)?;
        // Beyond jiff's range no zone has rules of its own any more, so the nearest instant answers as well.
        let nearest = self
            .seconds
            .clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let instant = jiff::Timestamp::from_second(nearest).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let offset: Offset = zone.to_offset(instant);
        Ok(i64::from(offset.seconds()))
    }
}

fn read_date(rest: &mut &str) -> Option<i64> {
    let year = digits(rest, 4)?;
    *rest = rest.strip_prefix('-')?;
    let month = digits(rest, 2)?;
    *rest = rest.strip_prefix('-')?;
    let day = digits(rest, 2)?;
    let valid = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    valid.then(|| days_from_civil(year, month, day))
}

fn read_offset(text: &str, lenient: bool) -> Option<i64> {
    match text {
        "Z" => return Some(0),
        "z" | "" if lenient => return Some(0),
        _ => {}
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = &text[1..];
    let hours = digits(&mut rest, 2)?;
    rest = rest.strip_prefix(':').or(Some(rest).filter(|_| lenient))?;
    let minutes = digits(&mut rest, 2)?;
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Units in the order in which they are tried: the longer before its prefix.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1000),
    ("µs", 1000),
    ("μs", 1000),
    ("ms", 1_000_000),
    ("s", NANOS),
    ("m", 60 * NANOS),
    ("h", 3600 * NANOS),
];

impl Duration {
    /// Reads a duration as Go writes it: `1h30m`, `-1.5s`, `0`.
    pub fn parse(text: &str) -> Option<Duration> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Duration(0));
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
            let after = &rest[whole..];
            let fraction = after
                .strip_prefix('.')
                .map_or("", |f| &f[..f.bytes().take_while(u8::is_ascii_digit).count()]);
            if whole == 0 && fraction.is_empty() {
                return None;
            }
            let number = if whole == 0 {
                0
            } else {
                rest[..whole].parse::<i64>().ok()?
            };
            rest = if after.starts_with('.') {
                &after[1 + fraction.len()..]
            } else {
                after
            };
            let (name, unit) = UNITS.iter().find(|(name, _)| rest.starts_with(name))?;
            rest = &rest[name.len()..];
            total += i128::from(number) * i128::from(*unit);
            // Digits beyond what a nanosecond can show make no difference.
            let mut scale = i128::from(*unit);
            let mut part: i128 = 0;
            for byte in fraction.bytes().take(15) {
                part = part * 10 + i128::from(byte - b'0');
                scale *= 10;
            }
            total += part * i128::from(*unit) * i128::from(*unit) / scale;
            if total > i128::from(i64::MAX) + 1 {
                return None;
            }
        }
        i64::try_from(if negative { -total } else { total })
            .ok()
            .map(Duration)
    }

    /// Reads what the schema format `duration` allows beside Go's: `3 days`, `2 weeks 1 hour`.
    pub(crate) fn parse_lenient(text: &str) -> Option<Duration> {
        if let Some(duration) = Duration::parse(text) {
            return Some(duration);
        }
        let mut total: i64 = 0;
        let mut found = false;
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            rest = &rest[start..];
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let factor: i64 = rest[..count].parse().ok()?;
            rest = rest[count..].trim_start();
            let length: usize = rest
                .chars()
                .take_while(|c| c.is_ascii_alphabetic() || *c == 'µ')
                .map(char::len_utf8)
                .sum();
            let unit = rest[..length].to_lowercase();
            rest = &rest[length..];
            let nanos = match unit.as_str() {
                "ns" => 1,
                u if u.starts_with("nano") => 1,
                "us" | "µs" => 1000,
                u if u.starts_with("micro") => 1000,
                "ms" => 1_000_000,
                u if u.starts_with("milli") => 1_000_000,
                "m" => 60 * NANOS,
                u if u.starts_with("min") => 60 * NANOS,
                "s" => NANOS,
                u if u.starts_with("sec") => NANOS,
                "h" | "hr" => 3600 * NANOS,
                u if u.starts_with("hour") => 3600 * NANOS,
                "d" => 86_400 * NANOS,
                u if u.starts_with("day") => 86_400 * NANOS,
                "w" | "week" => 7 * 86_400 * NANOS,
                u if u.starts_with("wk") || u.starts_with("week") => 7 * 86_400 * NANOS,
                _ => continue,
            };
            found = true;
            total = total.checked_add(factor.checked_mul(nanos)?)?;
        }
        found.then_some(Duration(total))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = ((self.0 / NANOS).unsigned_abs(), (self.0 % NANOS).unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        if nanos == 0 {
            return write!(f, "{sign}{seconds}s");
        }
        let fraction = format!("{nanos:09}");
        write!(f, "{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
    }
}
