//! When an application may be synced: windows of a project, by the clock.
//!
//! An active `deny` window forbids; otherwise an active `allow` window allows; otherwise the mere existence of one forbids.
//! A sync by hand may be let through, and one that began in time may be let finish.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::Deserialize;

pub use fairway_text_cron::{BadSchedule, Schedule};

use crate::retry::go_duration;

/// What a window does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Syncs are allowed in it, and only in such.
    Allow,
    /// Syncs are forbidden in it.
    Deny,
}

/// An entry of `spec.syncWindows`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncWindow {
    /// What it does.
    pub kind: Kind,
    /// When it begins, as cron says it.
    pub schedule: String,
    /// How long it lasts.
    pub duration: String,
    /// Names of applications; patterns are allowed.
    #[serde(default)]
    pub applications: Vec<String>,
    /// Namespaces of destinations.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Servers or names of destinations.
    #[serde(default)]
    pub clusters: Vec<String>,
    /// Whether syncs by hand are let through.
    #[serde(default)]
    pub manual_sync: bool,
    /// The time zone of the schedule; UTC if empty.
    #[serde(default)]
    pub time_zone: String,
    /// Whether all of applications, namespaces and clusters have to match, or any.
    #[serde(default, rename = "andOperator")]
    pub use_and_operator: bool,
    /// Whether a sync that began in time may finish.
    #[serde(default)]
    pub sync_overrun: bool,
}

/// A window that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Its schedule is none.
    #[error("cannot parse schedule '{schedule}': {reason}")]
    Schedule {
        /// As written.
        schedule: String,
        /// What is wrong.
        reason: BadSchedule,
    },
    /// Its duration is none.
    #[error("cannot parse duration '{0}'; write for example 30m or 1h")]
    Duration(String),
    /// Its time zone is none.
    #[error("cannot parse '{0}' as a time zone; write a name such as Europe/Berlin")]
    TimeZone(String),
}

/// What windows are about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The application's name.
    pub application: &'a str,
    /// The destination's server; empty if it is named.
    pub server: &'a str,
    /// The destination's name; empty if it is not.
    pub cluster: &'a str,
    /// The destination's namespace.
    pub namespace: &'a str,
}

impl SyncWindow {
    /// Whether the window is about an application.
    pub fn is_about(&self, subject: Subject<'_>) -> bool {
        let any = |patterns: &[String], texts: &[&str]| {
            let fits = |pattern: &String| {
                texts
                    .iter()
                    .any(|text| !text.is_empty() && fairway_text_glob::matches(pattern, text))
            };
            (!patterns.is_empty()).then(|| patterns.iter().any(fits))
        };
        let verdicts = [
            any(&self.applications, &[subject.application]),
            any(&self.clusters, &[subject.cluster, subject.server]),
            any(&self.namespaces, &[subject.namespace]),
        ];
        let mut set = verdicts.into_iter().flatten().peekable();
        match self.use_and_operator {
            true => set.peek().is_some() && set.all(|matched| matched),
            false => set.any(|matched| matched),
        }
    }

    /// Whether the window is open.
    pub fn is_active(&self, now: Timestamp) -> Result<bool, WindowError> {
        let schedule: Schedule = self.schedule.parse().map_err(|reason| WindowError::Schedule {
            schedule: self.schedule.clone(),
            reason,
        })?;
        let bad_duration = || WindowError::Duration(self.duration.clone());
        let duration = match self.duration.parse::<u64>() {
            // Argo CD wants a unit here.
            Ok(_) => return Err(bad_duration()),
            Err(_) => go_duration(&self.duration).ok_or_else(bad_duration)?,
        };
        let here = self.local(now)?;
        let Ok(from) = here.checked_sub(duration) else {
            return Err(bad_duration());
        };
        Ok(schedule.next(from).is_some_and(|begin| begin < here))
    }

    /// The time on the wall where the window is.
    fn local(&self, now: Timestamp) -> Result<DateTime, WindowError> {
        let zone = match self.time_zone.as_str() {
            "" | "UTC" => TimeZone::UTC,
            name => TimeZoneDatabase::bundled()
                .get(name)
                .map_err(|_| WindowError::TimeZone(name.to_owned()))?,
        };
        Ok(now.to_zoned(zone).datetime())
    }
}

/// Whether an application may be synced now, by all windows that are about it. `began` is when the sync began, if it has.
pub fn may_sync(
    windows: &[SyncWindow],
    now: Timestamp,
    by_hand: bool,
    began: Option<Timestamp>,
) -> Result<bool, WindowError> {
    let mut open = Vec::with_capacity(windows.len());
    for window in windows {
        open.push((window, window.is_active(now)?));
    }
    let pick = |kind: Kind, active: bool| {
        let fits =
            move |(window, is_active): &&(&SyncWindow, bool)| window.kind == kind && *is_active == active;
        open.iter()
            .filter(fits)
            .map(|(window, _)| *window)
            .collect::<Vec<&SyncWindow>>()
    };
    let (denying, allowing, closed) = (
        pick(Kind::Deny, true),
        pick(Kind::Allow, true),
        pick(Kind::Allow, false),
    );
    let in_the_way = match (denying.is_empty(), allowing.is_empty(), closed.is_empty()) {
        (false, _, _) => denying,
        (true, true, false) => closed,
        _ => return Ok(true),
    };
    if by_hand && in_the_way.iter().all(|window| window.manual_sync) {
        return Ok(true);
    }
    match began {
        Some(began) if in_the_way.iter().all(|window| window.sync_overrun) => {
            may_sync(windows, began, by_hand, None)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests;
