//! Schedules as cron writes them: five fields, with names, ranges, steps and lists; and the next time that fits. Must not know what
//! is scheduled, nor what time it is.

use fairway_text_gotext::duration;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

/// A schedule: for each field the values that fit, as bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// A day has to fit either of two fields if neither is a star, and both otherwise.
    any_day: bool,
}

/// A text that is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSchedule(String);

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// How far ahead a schedule is looked at: a 29 February may be eight years away.
const MAX_DAYS: usize = 366 * 9;

impl std::str::FromStr for Schedule {
    type Err = BadSchedule;

    fn from_str(text: &str) -> Result<Self, BadSchedule> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(BadSchedule(format!(
                "expected exactly 5 fields, found {}: [{}]",
                fields.len(),
                fields.join(" ")
            )));
        };
        let is_star = |field: &str| field.starts_with('*') || field.starts_with('?');
        Ok(Self {
            minutes: bits(minutes, 0, 59, &[])?,
            hours: bits(hours, 0, 23, &[])?,
            days: bits(days, 1, 31, &[])?,
            months: bits(months, 1, 12, MONTHS)?,
            weekdays: bits(weekdays, 0, 6, WEEKDAYS)?,
            any_day: !is_star(days) && !is_star(weekdays),
        })
    }
}

impl Schedule {
    /// Reads a schedule that may also be one of the words that stand for common ones, as Kubernetes does: `@daily`.
    pub fn standard(text: &str) -> Result<Self, BadSchedule> {
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            word if word.starts_with('@') => {
                return Err(BadSchedule(format!("unrecognized descriptor: {word}")));
            }
            fields => fields,
        };
        fields.parse()
    }

    /// Whether a text is a schedule as CronJobs write it: with a time zone before it, or a period (`@every 1h`), too. These two
    /// are accepted where upstream accepts them; whoever acts on one has to say so if it cannot.
    pub fn check(text: &str) -> Result<(), BadSchedule> {
        let zoned = ["TZ=", "CRON_TZ="].iter().any(|prefix| text.starts_with(prefix));
        let text = match zoned {
            true => text.split_once(' ').map_or("", |(_, rest)| rest).trim(),
            false => text,
        };
        match text.strip_prefix("@every ") {
            Some(every) => match duration::parse(every) {
                Ok(_) => Ok(()),
                Err(why) => Err(BadSchedule(format!("failed to parse duration {text}: {why}"))),
            },
            None => Self::standard(text).map(drop),
        }
    }

    /// The first time after another that fits; none if none does.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let mut date = after.date();
        let mut from = Some(after.time());
        for _ in 0..MAX_DAYS {
            if self.has_date(date)
                && let Some(time) = self.first_time(from)
            {
                return Some(date.to_datetime(time));
            }
            from = None;
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn has_date(&self, date: Date) -> bool {
        let day = has(self.days, i64::from(date.day()));
        let weekday = has(self.weekdays, i64::from(date.weekday().to_sunday_zero_offset()));
        let fits = if self.any_day {
            day || weekday
        } else {
            day && weekday
        };
        fits && has(self.months, i64::from(date.month()))
    }

    /// The first time of a day, after another if there is one.
    fn first_time(&self, after: Option<Time>) -> Option<Time> {
        let start = after.map_or(0, |time| {
            i64::from(time.hour()) * 60 + i64::from(time.minute()) + 1
        });
        let fits = |minute: &i64| has(self.hours, minute / 60) && has(self.minutes, minute % 60);
        let minute = (start..24 * 60).find(fits)?;
        Time::new(
            i8::try_from(minute / 60).ok()?,
            i8::try_from(minute % 60).ok()?,
            0,
            0,
        )
        .ok()
    }
}

fn has(bits: u64, value: i64) -> bool {
    bits & (1 << value) != 0
}

/// A field: a list of ranges with steps. What is wrong is said in the words of the parser that Kubernetes uses.
fn bits(field: &str, min: u32, max: u32, names: &[&str]) -> Result<u64, BadSchedule> {
    let parts = field.split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| range(part, min, max, names).map_err(BadSchedule))
        .try_fold(0, |all, bits| Ok(all | bits?))
}

/// `*`, `a` or `a-b`, each with `/step` or without.
fn range(part: &str, min: u32, max: u32, names: &[&str]) -> Result<u64, String> {
    let number = |text: &str| {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        match named.and_then(|index| u32::try_from(index).ok()) {
            Some(index) => Ok(index + min),
            None => integer(text),
        }
    };
    let (range, step) = match part.split_once('/') {
        Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {part}")),
        Some((range, step)) => (range, Some(step)),
        None => (part, None),
    };
    let (low, high) = match range {
        "*" | "?" => (min, max),
        range => match range.split_once('-') {
            Some((_, high)) if high.contains('-') => return Err(format!("too many hyphens: {part}")),
            Some((low, high)) => (number(low)?, number(high)?),
            None if step.is_some() => (number(range)?, max),
            None => (number(range)?, number(range)?),
        },
    };
    let step = step.map_or(Ok(1), integer)?;
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    if low < min {
        return Err(format!(
            "beginning of range ({low}) below minimum ({min}): {part}"
        ));
    }
    if high > max {
        return Err(format!("end of range ({high}) above maximum ({max}): {part}"));
    }
    if low > high {
        return Err(format!(
            "beginning of range ({low}) beyond end of range ({high}): {part}"
        ));
    }
    let values = (low..=high).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    Ok(values.fold(0, |bits, value| bits | 1 << value))
}

fn integer(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_is_found() {
        let at = |text: &str| text.parse::<DateTime>().unwrap();
        for (schedule, after, expected) in [
            ("*/15 * * * *", "2026-01-01T00:14:59", Some("2026-01-01T00:15:00")),
            (
                "0 2 * * mon-fri",
                "2026-01-02T03:00:00",
                Some("2026-01-05T02:00:00"),
            ),
            ("0 0 29 2 *", "2026-01-01T00:00:00", Some("2028-02-29T00:00:00")),
            ("0 0 31 2 *", "2026-01-01T00:00:00", None),
            ("@daily", "2026-01-01T00:00:00", Some("2026-01-02T00:00:00")),
            ("@hourly", "2026-01-01T00:59:00", Some("2026-01-01T01:00:00")),
        ] {
            let found = Schedule::standard(schedule).unwrap().next(at(after));
            assert_eq!(found, expected.map(at), "{schedule}");
        }
        for wrong in [
            "",
            "* * * *",
            "60 * * * *",
            "*/0 * * * *",
            "@sometimes",
            "@every 1h",
            "a * * * *",
        ] {
            assert!(Schedule::standard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_ones_are_told_in_upstreams_words() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar MON",
            "0 0 ? * 0",
            "@hourly",
            "@every 1h30m",
            "TZ=UTC * * * * *",
            "10/20 * * * *",
        ] {
            assert_eq!(Schedule::check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("error", "expected exactly 5 fields, found 1: [error]"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every soon",
                "failed to parse duration @every soon: time: invalid duration \"soon\"",
            ),
        ] {
            assert_eq!(Schedule::check(bad), Err(BadSchedule(why.to_owned())), "{bad}");
        }
    }
}
