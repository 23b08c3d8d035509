//! Points in time and durations, as Go formats and reads them.

mod layout;
mod methods;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

pub use layout::parse as parse_layout;
pub use methods::call_method;
pub(crate) use methods::{DURATION_METHODS, TIME_METHODS};

pub(crate) const SECOND: i64 = 1_000_000_000;

/// A `time.Time`: nanoseconds since 1970, and the zone in which it is shown.
#[derive(Debug, Clone)]
pub struct Time {
    /// Nanoseconds since 1970.
    pub nanos: i128,
    /// Where it is shown.
    pub zone: Zone,
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

/// A `*time.Location`.
#[derive(Debug, Clone)]
pub enum Zone {
    /// UTC, which is also what `Local` means here: nothing depends on the machine.
    Utc,
    /// A fixed offset in seconds and its abbreviation.
    Fixed(i32, Arc<str>),
    /// A zone of the database.
    Named(TimeZone),
}

impl Zone {
    /// Go's `time.LoadLocation`.
    pub fn load(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" | "Local" => Some(Self::Utc),
            name => jiff::tz::TimeZoneDatabase::bundled()
                .get(name)
                .ok()
                .map(Self::Named),
        }
    }

    fn offset(&self, seconds: i64) -> (i32, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Fixed(offset, name) => (*offset, name.to_string()),
            Self::Named(zone) => {
                let timestamp = Timestamp::from_second(seconds).unwrap_or_default();
                let info = zone.to_offset_info(timestamp);
                (info.offset().seconds(), info.abbreviation().to_owned())
            }
        }
    }

    /// The offset that applies at a local time.
    fn offset_of_local(&self, seconds: i64) -> i32 {
        // One step is right everywhere but within an hour of a change of the clocks.
        let guess = self.offset(seconds).0;
        self.offset(seconds - i64::from(guess)).0
    }
}

/// The parts of a local date and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) nanos: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    pub(crate) year_day: i64,
    pub(crate) offset: i32,
    pub(crate) abbreviation: String,
}

/// Days since 1970 of a date in the proleptic Gregorian calendar; months beyond 12 count on.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    // Years that start in March end with the leap day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl Time {
    /// The beginning of Go's calendar, which is what an unset time is.
    pub fn zero() -> Self {
        Self {
            nanos: i128::from(days_from_civil(1, 1, 1)) * 86_400 * i128::from(SECOND),
            zone: Zone::Utc,
        }
    }

    /// A time in UTC.
    pub fn utc(nanos: i128) -> Self {
        Self {
            nanos,
            zone: Zone::Utc,
        }
    }

    /// Seconds since 1970.
    pub fn unix(&self) -> i64 {
        i64::try_from(self.nanos.div_euclid(i128::from(SECOND))).unwrap_or(i64::MAX)
    }

    /// The same time, shown elsewhere.
    pub fn in_zone(&self, zone: Zone) -> Self {
        Self {
            nanos: self.nanos,
            zone,
        }
    }

    /// A later time.
    pub fn add(&self, nanos: i64) -> Self {
        Self {
            nanos: self.nanos + i128::from(nanos),
            zone: self.zone.clone(),
        }
    }

    pub(crate) fn civil(&self) -> Civil {
        let (offset, abbreviation) = self.zone.offset(self.unix());
        let local = self.unix().saturating_add(i64::from(offset));
        let (days, seconds) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            nanos: i64::try_from(self.nanos.rem_euclid(i128::from(SECOND))).unwrap_or(0),
            weekday: (days + 4).rem_euclid(7),
            year_day: days - days_from_civil(year, 1, 1) + 1,
            offset,
            abbreviation,
        }
    }

    /// The time of a local date in a zone.
    pub(crate) fn from_civil(civil: &Civil, zone: Zone) -> Self {
        let local = days_from_civil(civil.year, civil.month, civil.day) * 86_400
            + civil.hour * 3600
            + civil.minute * 60
            + civil.second;
        let seconds = local - i64::from(zone.offset_of_local(local));
        let nanos = i128::from(seconds) * i128::from(SECOND) + i128::from(civil.nanos);
        Self { nanos, zone }
    }

    /// Formats by a Go layout.
    pub fn format(&self, layout: &str) -> String {
        layout::format(self, layout)
    }

    /// As `%v` prints it.
    pub fn display(&self) -> String {
        self.format("2006-01-02 15:04:05.999999999 -0700 MST")
    }

    /// As JSON has it.
    pub fn rfc3339_nano(&self) -> String {
        self.format("2006-01-02T15:04:05.999999999Z07:00")
    }
}

/// An offset as a zone of its own.
pub(crate) fn fixed_zone(seconds: i32, name: &str) -> Zone {
    match Offset::from_seconds(seconds) {
        Ok(_) => Zone::Fixed(seconds, name.into()),
        Err(_) => Zone::Utc,
    }
}

#[cfg(test)]
mod tests;
