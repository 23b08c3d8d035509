//! Go's layouts, in which a date is described by how a certain one would look.

use super::{Civil, Time, Zone, fixed_zone};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A piece of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    SpaceDay,
    ZeroDay,
    SpaceYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    /// Whether UTC is `Z`, whether there are colons, and how many parts there are.
    Offset {
        z: bool,
        colons: bool,
        parts: u8,
    },
    /// How many digits, and whether zeros at the end are shown.
    Fraction {
        digits: usize,
        zeros: bool,
    },
}

/// Longest first where one begins another.
const PIECES: &[(&str, Piece)] = &[
    ("January", Piece::LongMonth),
    ("Jan", Piece::Month),
    ("Monday", Piece::LongWeekday),
    ("Mon", Piece::Weekday),
    ("MST", Piece::ZoneName),
    ("2006", Piece::LongYear),
    ("__2", Piece::SpaceYearDay),
    ("_2", Piece::SpaceDay),
    ("002", Piece::ZeroYearDay),
    ("01", Piece::ZeroMonth),
    ("02", Piece::ZeroDay),
    ("03", Piece::ZeroHour12),
    ("04", Piece::ZeroMinute),
    ("05", Piece::ZeroSecond),
    ("06", Piece::Year),
    ("15", Piece::Hour),
    ("1", Piece::NumMonth),
    ("2", Piece::Day),
    ("3", Piece::Hour12),
    ("4", Piece::Minute),
    ("5", Piece::Second),
    ("PM", Piece::UpperPm),
    ("pm", Piece::LowerPm),
    (
        "-07:00:00",
        Piece::Offset {
            z: false,
            colons: true,
            parts: 3,
        },
    ),
    (
        "-070000",
        Piece::Offset {
            z: false,
            colons: false,
            parts: 3,
        },
    ),
    (
        "-07:00",
        Piece::Offset {
            z: false,
            colons: true,
            parts: 2,
        },
    ),
    (
        "-0700",
        Piece::Offset {
            z: false,
            colons: false,
            parts: 2,
        },
    ),
    (
        "-07",
        Piece::Offset {
            z: false,
            colons: false,
            parts: 1,
        },
    ),
    (
        "Z07:00:00",
        Piece::Offset {
            z: true,
            colons: true,
            parts: 3,
        },
    ),
    (
        "Z070000",
        Piece::Offset {
            z: true,
            colons: false,
            parts: 3,
        },
    ),
    (
        "Z07:00",
        Piece::Offset {
            z: true,
            colons: true,
            parts: 2,
        },
    ),
    (
        "Z0700",
        Piece::Offset {
            z: true,
            colons: false,
            parts: 2,
        },
    ),
    (
        "Z07",
        Piece::Offset {
            z: true,
            colons: false,
            parts: 1,
        },
    ),
];

/// The first piece of a layout: what is before it, the piece, and what is after.
fn next_piece(layout: &str) -> (&str, Option<Piece>, &str) {
    for (at, _) in layout.char_indices() {
        let rest = &layout[at..];
        if let Some((piece, length)) = fraction(rest) {
            return (&layout[..at], Some(piece), &rest[length..]);
        }
        let found = PIECES.iter().find(|(text, piece)| {
            let next = rest.as_bytes().get(text.len());
            let word_goes_on =
                matches!(piece, Piece::Month | Piece::Weekday) && next.is_some_and(u8::is_ascii_lowercase);
            let year = *piece == Piece::SpaceDay && rest.starts_with("_2006");
            rest.starts_with(text) && !word_goes_on && !year
        });
        if let Some((text, piece)) = found {
            return (&layout[..at], Some(*piece), &rest[text.len()..]);
        }
    }
    (layout, None, "")
}

/// `.000` or `,999`, if no digit follows.
fn fraction(text: &str) -> Option<(Piece, usize)> {
    let rest = text.strip_prefix(['.', ','])?;
    let first = rest.bytes().next().filter(|byte| matches!(byte, b'0' | b'9'))?;
    let digits = rest.bytes().take_while(|byte| *byte == first).count();
    let digit_follows = rest.as_bytes().get(digits).is_some_and(u8::is_ascii_digit);
    (!digit_follows).then_some((
        Piece::Fraction {
            digits,
            zeros: first == b'0',
        },
        digits + 1,
    ))
}

pub(super) fn format(time: &Time, layout: &str) -> String {
    let civil = time.civil();
    let mut out = String::new();
    let mut rest = layout;
    loop {
        let (before, piece, after) = next_piece(rest);
        out.push_str(before);
        let Some(piece) = piece else {
            return out;
        };
        let element = &rest[before.len()..rest.len() - after.len()];
        put(&mut out, piece, &civil, element.starts_with(','));
        rest = after;
    }
}

fn name(names: &[&'static str], at: i64) -> &'static str {
    usize::try_from(at)
        .ok()
        .and_then(|at| names.get(at))
        .copied()
        .unwrap_or("")
}

fn put(out: &mut String, piece: Piece, civil: &Civil, comma: bool) {
    let hour12 = if civil.hour % 12 == 0 { 12 } else { civil.hour % 12 };
    let text = match piece {
        Piece::LongMonth => name(&MONTHS, civil.month - 1).to_owned(),
        Piece::Month => name(&MONTHS, civil.month - 1).get(..3).unwrap_or("").to_owned(),
        Piece::NumMonth => civil.month.to_string(),
        Piece::ZeroMonth => format!("{:02}", civil.month),
        Piece::LongWeekday => name(&DAYS, civil.weekday).to_owned(),
        Piece::Weekday => name(&DAYS, civil.weekday).get(..3).unwrap_or("").to_owned(),
        Piece::Day => civil.day.to_string(),
        Piece::SpaceDay => format!("{:2}", civil.day),
        Piece::ZeroDay => format!("{:02}", civil.day),
        Piece::SpaceYearDay => format!("{:3}", civil.year_day),
        Piece::ZeroYearDay => format!("{:03}", civil.year_day),
        Piece::Hour => format!("{:02}", civil.hour),
        Piece::Hour12 => hour12.to_string(),
        Piece::ZeroHour12 => format!("{hour12:02}"),
        Piece::Minute => civil.minute.to_string(),
        Piece::ZeroMinute => format!("{:02}", civil.minute),
        Piece::Second => civil.second.to_string(),
        Piece::ZeroSecond => format!("{:02}", civil.second),
        Piece::LongYear if civil.year < 0 => format!("-{:04}", -civil.year),
        Piece::LongYear => format!("{:04}", civil.year),
        Piece::Year => format!("{:02}", civil.year.rem_euclid(100)),
        Piece::UpperPm => if civil.hour >= 12 { "PM" } else { "AM" }.to_owned(),
        Piece::LowerPm => if civil.hour >= 12 { "pm" } else { "am" }.to_owned(),
        Piece::ZoneName if civil.abbreviation.is_empty() => {
            let minutes = civil.offset / 60;
            let sign = if minutes < 0 { '-' } else { '+' };
            let minutes = minutes.abs();
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        Piece::ZoneName => civil.abbreviation.clone(),
        Piece::Offset { z: true, .. } if civil.offset == 0 => "Z".to_owned(),
        Piece::Offset { colons, parts, .. } => {
            let sign = if civil.offset < 0 { '-' } else { '+' };
            let seconds = civil.offset.abs();
            let colon = if colons { ":" } else { "" };
            let mut text = format!("{sign}{:02}", seconds / 3600);
            if parts > 1 {
                text.push_str(&format!("{colon}{:02}", seconds / 60 % 60));
            }
            if parts > 2 {
                text.push_str(&format!("{colon}{:02}", seconds % 60));
            }
            text
        }
        Piece::Fraction { digits, zeros } => {
            let nanos = format!("{:09}", civil.nanos);
            let shown = nanos.get(..digits.min(9)).unwrap_or("");
            let shown = if zeros { shown } else { shown.trim_end_matches('0') };
            let point = if comma { "," } else { "." };
            match shown.is_empty() {
                true => String::new(),
                false => format!("{point}{shown}"),
            }
        }
    };
    out.push_str(&text);
}

/// Go's `time.ParseInLocation`.
pub fn parse(layout: &str, value: &str, zone: &Zone) -> Result<Time, String> {
    let mut reader = Reader {
        layout,
        value,
        rest: value,
        civil: Civil {
            year: 0,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            nanos: 0,
            weekday: 0,
            year_day: 0,
            offset: 0,
            abbreviation: String::new(),
        },
        pm: None,
        zone: None,
    };
    reader.all()?;
    reader.finish(zone)
}

struct Reader<'a> {
    layout: &'a str,
    value: &'a str,
    rest: &'a str,
    civil: Civil,
    pm: Option<bool>,
    zone: Option<Zone>,
}

impl<'a> Reader<'a> {
    fn fault(&self, element: &str) -> String {
        let quote = |text: &str| crate::text::quote(text.as_bytes());
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.value),
            quote(self.layout),
            quote(self.rest),
            quote(element)
        )
    }

    fn out_of_range(&self, what: &str) -> String {
        format!(
            "parsing time {}: {what} out of range",
            crate::text::quote(self.value.as_bytes())
        )
    }

    fn all(&mut self) -> Result<(), String> {
        let mut layout = self.layout;
        loop {
            let (before, piece, after) = next_piece(layout);
            self.rest = match self.rest.strip_prefix(before) {
                Some(rest) => rest,
                None => return Err(self.fault(before)),
            };
            let Some(piece) = piece else {
                if !self.rest.is_empty() {
                    let extra = crate::text::quote(self.rest.as_bytes());
                    let value = crate::text::quote(self.value.as_bytes());
                    return Err(format!("parsing time {value}: extra text: {extra}"));
                }
                return Ok(());
            };
            let element = &layout[before.len()..layout.len() - after.len()];
            self.piece(piece, after).ok_or_else(|| self.fault(element))?;
            layout = after;
        }
    }

    /// One or two digits, or exactly two.
    fn two(&mut self, exactly: bool) -> Option<i64> {
        let digits = self.rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        if digits == 0 || (exactly && digits < 2) {
            return None;
        }
        self.digits(digits)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let text = self
            .rest
            .get(..count)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        self.rest = &self.rest[count..];
        text.parse().ok()
    }

    fn word(&mut self, names: &[&str], short: bool) -> Option<i64> {
        for (at, name) in names.iter().enumerate() {
            let name = if short { name.get(..3)? } else { name };
            if let Some(start) = self.rest.get(..name.len())
                && start.eq_ignore_ascii_case(name)
            {
                self.rest = &self.rest[name.len()..];
                return i64::try_from(at).ok();
            }
        }
        None
    }

    fn piece(&mut self, piece: Piece, after: &str) -> Option<()> {
        match piece {
            Piece::LongMonth => self.civil.month = self.word(&MONTHS, false)? + 1,
            Piece::Month => self.civil.month = self.word(&MONTHS, true)? + 1,
            Piece::NumMonth => self.civil.month = self.two(false)?,
            Piece::ZeroMonth => self.civil.month = self.two(true)?,
            Piece::LongWeekday => self.word(&DAYS, false).map(|_| ())?,
            Piece::Weekday => self.word(&DAYS, true).map(|_| ())?,
            Piece::Day => self.civil.day = self.two(false)?,
            Piece::SpaceDay => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.civil.day = self.two(false)?;
            }
            Piece::ZeroDay => self.civil.day = self.two(true)?,
            Piece::SpaceYearDay | Piece::ZeroYearDay => {
                self.rest = self.rest.trim_start_matches(' ');
                let count = self.rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
                self.civil.year_day = self.digits(count)?;
            }
            Piece::Hour => self.civil.hour = self.two(false)?,
            Piece::Hour12 => self.civil.hour = self.two(false)?,
            Piece::ZeroHour12 => self.civil.hour = self.two(true)?,
            Piece::Minute => self.civil.minute = self.two(false)?,
            Piece::ZeroMinute => self.civil.minute = self.two(true)?,
            Piece::Second | Piece::ZeroSecond => {
                self.civil.second = self.two(piece == Piece::ZeroSecond)?;
                // A fraction may follow although the layout has none.
                let has_fraction = self.rest.starts_with(['.', ','])
                    && self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
                if has_fraction && !matches!(next_piece(after), ("", Some(Piece::Fraction { .. }), _)) {
                    let count = self.rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                    self.fraction(count)?;
                }
            }
            Piece::LongYear => self.civil.year = self.digits(4)?,
            Piece::Year => {
                let year = self.digits(2)?;
                self.civil.year = if year >= 69 { 1900 + year } else { 2000 + year };
            }
            Piece::UpperPm | Piece::LowerPm => {
                let (am, pm) = if piece == Piece::UpperPm {
                    ("AM", "PM")
                } else {
                    ("am", "pm")
                };
                let is_pm = self.rest.starts_with(pm);
                if !is_pm && !self.rest.starts_with(am) {
                    return None;
                }
                self.rest = &self.rest[2..];
                self.pm = Some(is_pm);
            }
            Piece::ZoneName => self.zone_name()?,
            Piece::Offset { z, colons, parts } => self.offset(z, colons, parts)?,
            Piece::Fraction { digits, zeros: true } => self.fraction(digits)?,
            Piece::Fraction { .. } => {
                if self.rest.starts_with(['.', ',']) {
                    let count = self.rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                    if count > 0 {
                        self.fraction(count)?;
                    }
                }
            }
        }
        Some(())
    }

    fn fraction(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.strip_prefix(['.', ','])?;
        let text = self
            .rest
            .get(..count)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        let padded = format!("{text:0<9}");
        self.civil.nanos = padded.get(..9)?.parse().ok()?;
        self.rest = &self.rest[count..];
        Some(())
    }

    fn zone_name(&mut self) -> Option<()> {
        let length = self
            .rest
            .bytes()
            .take(5)
            .take_while(u8::is_ascii_uppercase)
            .count();
        if length < 3 {
            return None;
        }
        let name = &self.rest[..length];
        self.rest = &self.rest[length..];
        self.zone = Some(match name {
            "UTC" => Zone::Utc,
            // Go does not know the offset of a bare abbreviation either.
            name => fixed_zone(0, name),
        });
        Some(())
    }

    fn offset(&mut self, z: bool, colons: bool, parts: u8) -> Option<()> {
        if z && let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            self.zone = Some(Zone::Utc);
            return Some(());
        }
        let negative = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-'])?;
        let mut seconds = self.digits(2)? * 3600;
        for unit in [60, 1].into_iter().take(usize::from(parts) - 1) {
            if colons {
                self.rest = self.rest.strip_prefix(':')?;
            }
            seconds += self.digits(2)? * unit;
        }
        let seconds = i32::try_from(if negative { -seconds } else { seconds }).ok()?;
        self.zone = Some(match seconds {
            0 => Zone::Utc,
            seconds => fixed_zone(seconds, ""),
        });
        Some(())
    }

    fn finish(mut self, default: &Zone) -> Result<Time, String> {
        match self.pm {
            Some(true) if self.civil.hour < 12 => self.civil.hour += 12,
            Some(false) if self.civil.hour == 12 => self.civil.hour = 0,
            _ => {}
        }
        let civil = &self.civil;
        let leap = (civil.year % 4 == 0 && civil.year % 100 != 0) || civil.year % 400 == 0;
        let days = match civil.month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => 31,
        };
        let checks = [
            ((1..=12).contains(&civil.month), "month"),
            ((1..=days).contains(&civil.day), "day"),
            ((0..24).contains(&civil.hour), "hour"),
            ((0..60).contains(&civil.minute), "minute"),
            ((0..60).contains(&civil.second), "second"),
        ];
        if let Some((_, what)) = checks.iter().find(|(fine, _)| !fine) {
            return Err(self.out_of_range(what));
        }
        if self.civil.year_day > 0 {
            self.civil.month = 1;
            self.civil.day = self.civil.year_day;
        }
        let zone = self.zone.unwrap_or_else(|| default.clone());
        Ok(Time::from_civil(&self.civil, zone))
    }
}
